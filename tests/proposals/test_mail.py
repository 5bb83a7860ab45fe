"""A patch for others: ``git am`` and ``git apply`` take it, whatever its summary says (D16)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcanvas.errors import ApplyFailed, ValidationError
from agentcanvas.proposals.mail import as_mail, save_mail
from agentcanvas.proposals.ways import Identity, Message
from tests.proposals.repositories import commit_all, files, git, init, message, repository, trailers
from tests.proposals.workspaces import Files, Link, Script, diff, write_files

pytestmark = [pytest.mark.req("D16", "S5")]

WHEN = 1_771_578_000_000
ADA = Identity("Ada Lovelace", "ada@analytical.org")
BEFORE: Files = {"f": "1\n2\n3\n", "gone": "x\n", "tool": "x\n", "no end": "a\nb"}
AFTER: Files = {
    "f": "1\ntwo\n3\n",
    "tool": Script("x\n"),
    "no end": "a\nc",
    "blob": bytes(range(256)) * 8,
    "ünï code": "é\n",
    "link": Link("f"),
}


def mail(patch: bytes, summary: str, author: Identity = ADA) -> bytes:
    told = Message(summary=summary, proposal_id="p1", run_id="r1", agent_id="coder")
    return as_mail(patch, told, author, WHEN)


def test_git_am_takes_it_with_author_date_message_and_trailers(tmp_path: Path) -> None:
    ready = repository(tmp_path, BEFORE, AFTER)
    data = mail(ready.patch, "# Count to tü\n\nBecause.\n- one\n- two\n")
    git(ready.workspace, "am", "-q", stdin=data)
    assert files(ready.workspace) == files(write_files(tmp_path / "after", AFTER))
    said = git(ready.workspace, "log", "-1", "--format=%an <%ae> %at")
    assert said == f"Ada Lovelace <ada@analytical.org> {WHEN // 1000}\n"
    assert message(ready.workspace).startswith("Count to tü\n\nBecause.\n- one\n- two\n\nProposal")
    assert trailers(ready.workspace) == {"Proposal": "p1", "Run": "r1", "Agent": "coder"}


def test_git_apply_takes_it_too(tmp_path: Path) -> None:
    ready = repository(tmp_path, BEFORE, AFTER)
    git(ready.workspace, "apply", "-", stdin=mail(ready.patch, "Count"))
    assert files(ready.workspace) == files(write_files(tmp_path / "after", AFTER))


SMUGGLED = [
    "x\n\ndiff --git a/evil b/evil\nnew file mode 100644\n--- /dev/null\n+++ b/evil\n"
    "@@ -0,0 +1 @@\n+evil\n",
    "x\n\n--- a/evil\n+++ b/evil\n@@ -0,0 +1 @@\n+evil\n",
    "x\n\nFrom: Mallory <m@evil.org>\nSubject: other\nDate: Thu, 1 Jan 1970 00:00:00 +0000\n\ny",
    "x\nFrom: Mallory <m@evil.org>\n\ny",
    "From: Mallory <m@evil.org>",
    "x\n\nFrom 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: M <m@e>\n",
    "x\n\n---\n not part\n",
    "x\n\nIndex: evil\n",
    "x\n\n-- >8 --\nSubject: other\n\ny",
    "x\r\nFrom: Mallory <m@evil.org>\r\n",
    "x\n\n-- \nsignature\n",
    "x\x00\x1b[31m\u2028From: M <m@evil.org>",
    "",
    "#",
    "[PATCH] x",
]


@pytest.mark.parametrize("summary", SMUGGLED)
def test_nothing_in_a_summary_becomes_a_header_or_a_patch(tmp_path: Path, summary: str) -> None:
    ready = repository(tmp_path, BEFORE, {**BEFORE, "f": "1\ntwo\n3\n"})
    data = mail(ready.patch, summary)
    git(ready.workspace, "-c", "mailinfo.scissors=true", "am", "-q", stdin=data)
    assert git(ready.workspace, "show", "--format=%an %ae %at", "--name-only").split() == [
        *("Ada", "Lovelace", "ada@analytical.org", str(WHEN // 1000), "f")
    ]
    assert git(ready.workspace, "rev-list", "--count", "HEAD") == "2\n"
    assert trailers(ready.workspace)["Proposal"] == "p1"
    other = repository(tmp_path / "other", BEFORE, {**BEFORE, "f": "x\n"})
    git(other.workspace, "apply", "-", stdin=data)
    assert git(other.workspace, "status", "--porcelain") == " M f\n"


@pytest.mark.parametrize("name", ["Ada <x@y>\nCc: all", "Ädä", 'A "quoted" name', "A, B"])
def test_an_odd_name_stays_one_name(tmp_path: Path, name: str) -> None:
    ready = repository(tmp_path, BEFORE, {**BEFORE, "f": "1\ntwo\n3\n"})
    git(ready.workspace, "am", "-q", stdin=mail(ready.patch, "x", Identity(name, "a@b.org")))
    assert git(ready.workspace, "log", "-1", "--format=%ae") == "a@b.org\n"


@settings(max_examples=10)
@given(st.text(alphabet=st.sampled_from("-+@ \ndiFromSubjectx:8<>[]/#\r\t"), max_size=80))
def test_any_summary_leaves_one_commit_of_one_file(
    tmp_path_factory: pytest.TempPathFactory, summary: str
) -> None:
    folder = tmp_path_factory.mktemp("mail")
    workspace = write_files(init(folder / "w"), {"f": "1\n"})
    commit_all(workspace)
    patch = diff(folder / "d", {"f": "1\n"}, {"f": "2\n"})
    git(workspace, "am", "-q", stdin=mail(patch, summary))
    said = git(workspace, "show", "--format=%ae", "--name-only").split()
    assert said == ["ada@analytical.org", "f"]


def test_it_is_saved_whole_and_over_nothing(tmp_path: Path) -> None:
    target = tmp_path / "out" / "change.patch"
    with pytest.raises(ApplyFailed, match="No such file or directory"):
        save_mail(target, b"x")
    target.parent.mkdir()
    save_mail(target, b"mail")
    assert target.read_bytes() == b"mail"
    with pytest.raises(ValidationError, match="exists already"):
        save_mail(target, b"other")
    assert target.read_bytes() == b"mail"
    (tmp_path / "out" / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValidationError, match="exists already"):
        save_mail(tmp_path / "out" / "link", b"other")
    assert [path.name for path in sorted(target.parent.iterdir())] == ["change.patch", "link"]
