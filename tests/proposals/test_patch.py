"""Hostile patches are refused by name, honest ones are understood exactly."""

from __future__ import annotations

import base64
import hashlib
import os
import resource
import subprocess
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcanvas.errors import ScopeViolation, UnsafePatch
from agentcanvas.proposals.patch import Inspection, inspect
from agentcanvas.proposals.policy import BreachKind, Policy
from agentcanvas.proposals.tree import Mode, Tree
from agentcanvas.protocol.records import ChangeStatus
from tests.proposals.workspaces import Files, Link, Script, diff, write_files

pytestmark = pytest.mark.req("S5", "S6", "S8", "D14")

LINES = "".join(f"line {n}\n" for n in range(40))
BASE: Files = {
    "f.txt": "a\nb\nc\n",
    "long.txt": LINES,
    "crlf.txt": "a\r\nb\r\nc\r\n",
    ".env": "SECRET=1\n",
    "folder/x.py": "x = 1\n",
    "link": Link("folder"),
    "out": Link("/etc"),
}


def see(base: Path, patch: bytes, policy: Policy | None = None) -> Inspection:
    with Tree(base) as tree:
        return inspect(patch, tree, policy or Policy())


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_files(tmp_path / "base", BASE)


def added(path: str, text: str = "new\n", *, mode: str = "100644") -> str:
    body = "".join(f"+{line}\n" for line in text.splitlines())
    return (
        f"diff --git a/{path} b/{path}\nnew file mode {mode}\nindex 0000000..1111111\n"
        f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(text.splitlines())} @@\n{body}"
    )


def empty(path: str, *, mode: str = "100644") -> str:
    return f"diff --git a/{path} b/{path}\nnew file mode {mode}\nindex 0000000..e69de29\n"


def link(path: str, target: str) -> str:
    return (
        f"diff --git a/{path} b/{path}\nnew file mode 120000\n--- /dev/null\n+++ b/{path}\n"
        f"@@ -0,0 +1 @@\n+{target}\n\\ No newline at end of file\n"
    )


CHANGE = "--- a/f.txt\n+++ b/f.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
HOSTILE: dict[str, tuple[str, BreachKind, str]] = {
    "nothing": ("", BreachKind.NO_CHANGE, ""),
    "only space": (" \n\n", BreachKind.NO_CHANGE, ""),
    "prose": ("Dear reviewer,\n" + empty("x"), BreachKind.NOT_PLAIN_FORM, ""),
    "prose behind": (empty("x") + "and so on\n", BreachKind.NOT_PLAIN_FORM, ""),
    "no git header": (CHANGE, BreachKind.NOT_PLAIN_FORM, ""),
    "no prefix": ("diff --git f.txt f.txt\n" + CHANGE, BreachKind.NOT_PLAIN_FORM, ""),
    "parent": (empty("../x"), BreachKind.PARENT_FOLDER, "*"),
    "parent, quoted": (
        'diff --git "a/\\056\\056/x" "b/\\056\\056/x"\nnew file mode 100644\n',
        BreachKind.PARENT_FOLDER,
        "*",
    ),
    "absolute": (empty("/etc/cron.d/x"), BreachKind.NOT_PLAIN_FORM, ""),
    "absolute in the second line": (
        "diff --git a/f.txt b/f.txt\n--- /f.txt\n+++ /f.txt\n@@ -1 +1 @@\n-a\n+b\n",
        BreachKind.NOT_PLAIN_FORM,
        "",
    ),
    "names that disagree": (
        "diff --git a/f.txt b/f.txt\n--- a/f.txt\n+++ b/.env\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
        BreachKind.NOT_PLAIN_FORM,
        "",
    ),
    "git folder": (added(".git/hooks/pre-commit", mode="100755"), BreachKind.INTERNAL_FOLDER, "*"),
    "git folder below": (empty("sub/.git/config"), BreachKind.INTERNAL_FOLDER, "*"),
    "GIT folder": (empty(".GIT/config"), BreachKind.INTERNAL_FOLDER, "*"),
    "short git": (empty("git~1/config"), BreachKind.INTERNAL_FOLDER, "*"),
    "git with a dot": (empty(".git./config"), BreachKind.INTERNAL_FOLDER, "*"),
    "git stream": (empty(".git::$INDEX_ALLOCATION/x"), BreachKind.INTERNAL_FOLDER, "*"),
    "git, zero width": (empty(".g\u200cit/config"), BreachKind.INTERNAL_FOLDER, "*"),
    "our folder": (empty(".agentcanvas/flows/x.yaml"), BreachKind.INTERNAL_FOLDER, "*"),
    "node_modules": (empty("node_modules/x.js"), BreachKind.LEFT_OUT_FOLDER, "*"),
    "backslash": (
        'diff --git "a/a\\\\b" "b/a\\\\b"\nnew file mode 100644\n',
        BreachKind.BAD_NAME,
        "a\\b",
    ),
    "newline in a name": (
        'diff --git "a/a\\nb" "b/a\\nb"\nnew file mode 100644\n',
        BreachKind.BAD_NAME,
        "a\nb",
    ),
    "not UTF-8": (
        'diff --git "a/caf\\351" "b/caf\\351"\nnew file mode 100644\n',
        BreachKind.BAD_NAME,
        "caf\\xe9",
    ),
    "rename": (
        "diff --git a/.env b/shown\nsimilarity index 100%\nrename from .env\nrename to shown\n",
        BreachKind.NOT_PLAIN_FORM,
        "",
    ),
    "copy": (
        "diff --git a/.env b/seen.txt\nsimilarity index 100%\ncopy from .env\ncopy to seen.txt\n",
        BreachKind.NOT_PLAIN_FORM,
        "",
    ),
    "twice": (empty("x") + empty("x"), BreachKind.DUPLICATE_PATH, "x"),
    "case": (empty("New") + empty("new"), BreachKind.NAME_CLASH, "new"),
    "file and folder": (empty("x") + empty("x/y"), BreachKind.DOES_NOT_APPLY, ""),
    "below a file": (empty("f.txt/x"), BreachKind.THROUGH_LINK, "*"),
    "through a link": (empty("link/y.py"), BreachKind.THROUGH_LINK, "*"),
    "through a link outside": (empty("out/passwd"), BreachKind.THROUGH_LINK, "*"),
    "over a folder": (empty("folder"), BreachKind.SPECIAL_FILE, "*"),
    "new link, then through it": (
        link("way", "folder") + empty("way/y"),
        BreachKind.DOES_NOT_APPLY,
        "",
    ),
    "link outside": (link("l", "/etc/passwd"), BreachKind.LINK_LEAVES, "l"),
    "link up": (link("folder/l", "../../x"), BreachKind.LINK_LEAVES, "folder/l"),
    "link through a link": (link("l", "out/passwd"), BreachKind.LINK_LEAVES, "l"),
    "link into git": (link("l", ".git/config"), BreachKind.LINK_INTO_INTERNAL, "l"),
    "two links that lead out": (
        link("l1", "l2/..") + link("folder/l3", "../l1/.."),
        BreachKind.LINK_LEAVES,
        "folder/l3",
    ),
    "submodule": (
        "diff --git a/sub b/sub\nnew file mode 160000\nindex 0000000..1234567\n--- /dev/null\n"
        f"+++ b/sub\n@@ -0,0 +1 @@\n+Subproject commit {'1' * 40}\n",
        BreachKind.SUBMODULE,
        "sub",
    ),
    "gitmodules": (empty(".gitmodules"), BreachKind.SUBMODULE, "*"),
    "setuid": (empty("x", mode="104755"), BreachKind.FORBIDDEN_MODE, "x"),
    "all may write": (empty("x", mode="100777"), BreachKind.FORBIDDEN_MODE, "x"),
    "device": (empty("x", mode="020666"), BreachKind.FORBIDDEN_MODE, "x"),
    "wrong base": (
        "diff --git a/f.txt b/f.txt\nindex 1111111..2222222 100644\n" + CHANGE,
        BreachKind.WRONG_BASE,
        "f.txt",
    ),
    "adds what is there": (empty("f.txt"), BreachKind.WRONG_BASE, "f.txt"),
    "adds what is there, without ids": (
        "diff --git a/f.txt b/f.txt\nnew file mode 100644\n",
        BreachKind.DOES_NOT_APPLY,
        "f.txt",
    ),
    "other context": (
        "diff --git a/f.txt b/f.txt\n" + CHANGE.replace(" a\n", " z\n"),
        BreachKind.DOES_NOT_APPLY,
        "f.txt",
    ),
    "hunk on other lines": (
        "diff --git a/long.txt b/long.txt\n--- a/long.txt\n+++ b/long.txt\n"
        "@@ -5,3 +5,3 @@\n line 30\n-line 31\n+LINE\n line 32\n",
        BreachKind.MISPLACED_HUNK,
        "long.txt",
    ),
    "hunk without context": (
        "diff --git a/f.txt b/f.txt\n--- a/f.txt\n+++ b/f.txt\n@@ -2 +2 @@\n-b\n+B\n",
        BreachKind.DOES_NOT_APPLY,
        "f.txt",
    ),
    "line ends": (
        "diff --git a/crlf.txt b/crlf.txt\n" + CHANGE.replace("f.txt", "crlf.txt"),
        BreachKind.DOES_NOT_APPLY,
        "crlf.txt",
    ),
    "result other than promised": (
        "diff --git a/f.txt b/f.txt\nindex de98044..2222222 100644\n" + CHANGE,
        BreachKind.NOT_PLAIN_FORM,
        "f.txt",
    ),
    "cut off": (
        "diff --git a/f.txt b/f.txt\n" + CHANGE.removesuffix(" c\n"),
        BreachKind.NOT_PLAIN_FORM,
        "",
    ),
    "second file hidden in a hunk": (
        "diff --git a/f.txt b/f.txt\n--- a/f.txt\n+++ b/f.txt\n@@ -1,3 +1,30 @@\n a\n-b\n+B\n c\n"
        + empty("x"),
        BreachKind.NOT_PLAIN_FORM,
        "",
    ),
    "link retargeted outside": (
        "diff --git a/link b/link\n--- a/link\n+++ b/link\n"
        "@@ -1 +1 @@\n-folder\n\\ No newline at end of file\n+/etc/passwd\n"
        "\\ No newline at end of file\n",
        BreachKind.LINK_LEAVES,
        "link",
    ),
    "file that becomes a link outside": (
        "diff --git a/f.txt b/f.txt\ndeleted file mode 100644\nindex de98044..0000000\n"
        "--- a/f.txt\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-a\n-b\n-c\n"
        "diff --git a/f.txt b/f.txt\nnew file mode 120000\nindex 0000000..d09b807\n"
        "--- /dev/null\n+++ b/f.txt\n@@ -0,0 +1 @@\n+../outside\n\\ No newline at end of file\n",
        BreachKind.LINK_LEAVES,
        "f.txt",
    ),
    "renamed link, then through it": (
        "diff --git a/link b/way\nsimilarity index 100%\nrename from link\nrename to way\n"
        + empty("way/y"),
        BreachKind.NOT_PLAIN_FORM,
        "",
    ),
    "git deleted": (
        "diff --git a/.git/HEAD b/.git/HEAD\ndeleted file mode 100644\n",
        BreachKind.INTERNAL_FOLDER,
        "*",
    ),
    "git in wide letters": (
        empty("\uff0e\uff47\uff49\uff54/config"),
        BreachKind.INTERNAL_FOLDER,
        "*",
    ),
    "git with a blank": (empty(".git /config"), BreachKind.UNREADABLE, "*"),
    "our folder in capitals": (empty(".AgentCanvas/x"), BreachKind.INTERNAL_FOLDER, "*"),
    "escape in a name": (
        'diff --git "a/a\\033[2Jb" "b/a\\033[2Jb"\nnew file mode 100644\n',
        BreachKind.BAD_NAME,
        "*",
    ),
    "name shown backwards": (empty("txt\u202egpj.exe"), BreachKind.BAD_NAME, "*"),
    "a name beyond all measure": (empty("x" * 300), BreachKind.BAD_NAME, "*"),
    "a path beyond all measure": (empty("d/" * 600 + "x"), BreachKind.BAD_NAME, "*"),
    "numbers beyond all measure": (
        f"diff --git a/f.txt b/f.txt\n--- a/f.txt\n+++ b/f.txt\n@@ -{'9' * 5000},1 +1 @@\n-a\n+A\n",
        BreachKind.NOT_PLAIN_FORM,
        "",
    ),
    "lines that no file has": (
        "diff --git a/f.txt b/f.txt\n--- a/f.txt\n+++ b/f.txt\n@@ -9999999999,1 +1 @@\n-a\n+A\n",
        BreachKind.DOES_NOT_APPLY,
        "*",
    ),
    "fewer lines than said": (
        "diff --git a/f.txt b/f.txt\n--- a/f.txt\n+++ b/f.txt\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n c\n",
        BreachKind.NOT_PLAIN_FORM,
        "",
    ),
    "deletes what is not there": (
        "diff --git a/none b/none\ndeleted file mode 100644\nindex 1111111..0000000\n"
        "--- a/none\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
        BreachKind.WRONG_BASE,
        "*",
    ),
    "deletes a file that is other": (
        "diff --git a/f.txt b/f.txt\ndeleted file mode 100644\n--- a/f.txt\n+++ /dev/null\n"
        "@@ -1,3 +0,0 @@\n-x\n-y\n-z\n",
        BreachKind.DOES_NOT_APPLY,
        "*",
    ),
    "folder as a mode": (empty("x", mode="040000"), BreachKind.FORBIDDEN_MODE, "x"),
    "executable link": (
        "diff --git a/link b/link\nold mode 120000\nnew mode 100755\n",
        BreachKind.DOES_NOT_APPLY,
        "*",
    ),
    "binary that is none": (
        "diff --git a/b.bin b/b.bin\nnew file mode 100644\nindex 0000000..1111111\n"
        "GIT binary patch\nliteral 5\nMcmZ\n\n",
        BreachKind.UNREADABLE,
        "*",
    ),
    "combined diff": (
        "diff --cc f.txt\nindex 1,2..3\n--- a/f.txt\n+++ b/f.txt\n@@@ -1 -1 +1 @@@\n--a\n++b\n",
        BreachKind.NOT_PLAIN_FORM,
        "",
    ),
    "carriage returns": (
        empty("x").replace("\n", "\r\n"),
        BreachKind.NOT_PLAIN_FORM,
        "",
    ),
    "NUL in a name": (empty("a\0b"), BreachKind.UNREADABLE, "*"),
    "mode that stays": (
        "diff --git a/f.txt b/f.txt\nold mode 100644\nnew mode 100644\n",
        BreachKind.DOES_NOT_APPLY,
        "",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_patch_is_refused_with_its_reason(base: Path, case: str) -> None:
    text, kind, path = HOSTILE[case]
    found = see(base, text.encode())
    assert found.changes == ()
    assert kind in {breach.kind for breach in found.breaches}, found.breaches
    assert len({breach.path for breach in found.breaches}) == len(found.breaches)
    if path != "*":
        assert path in {breach.path for breach in found.breaches}
    with pytest.raises(UnsafePatch) as refused:
        found.insist()
    assert refused.value.breaches


def test_every_path_gets_its_own_breach_and_only_one(base: Path) -> None:
    patch = empty(".git/x") + empty("ok.txt") + empty("node_modules/.git/y") + empty("dist/z")
    found = see(base, patch.encode())
    assert {breach.path: breach.kind for breach in found.breaches} == {
        ".git/x": BreachKind.INTERNAL_FOLDER,
        "node_modules/.git/y": BreachKind.INTERNAL_FOLDER,
        "dist/z": BreachKind.LEFT_OUT_FOLDER,
    }


@pytest.mark.req("S8")
def test_a_change_outside_the_scope_is_a_scope_violation_that_gives_the_scope(base: Path) -> None:
    found = see(base, empty("src/x.py").encode(), Policy(scope=("docs/**",)))
    assert [breach.kind for breach in found.breaches] == [BreachKind.OUTSIDE_SCOPE]
    with pytest.raises(ScopeViolation, match=r"docs/\*\*"):
        found.insist()


def test_what_a_patch_does_is_told_file_by_file(base: Path, tmp_path: Path) -> None:
    after: dict[str, object] = dict(BASE)
    del after[".env"]
    after |= {"f.txt": "a\nB\nc", "crlf.txt": "a\r\nb\r\n", "new/deep.bin": bytes(range(256))}
    after |= {"run.sh": Script("#!/bin/sh\n"), "here": Link("folder/x.py"), "ü b.txt": ""}
    found = see(base, diff(tmp_path / "d", BASE, after))  # type: ignore[arg-type] # a wider dict
    assert found.breaches == ()
    assert {(file.path, file.status) for file in found.changed_files} == {
        (".env", ChangeStatus.DELETED),
        ("f.txt", ChangeStatus.MODIFIED),
        ("crlf.txt", ChangeStatus.MODIFIED),
        ("new/deep.bin", ChangeStatus.ADDED),
        ("run.sh", ChangeStatus.ADDED),
        ("here", ChangeStatus.ADDED),
        ("ü b.txt", ChangeStatus.ADDED),
    }
    results = {change.path: change.after for change in found.insist()}
    run, here = results[b"run.sh"], results[b"here"]
    assert run is not None
    assert here is not None
    assert (run.mode, here.mode, here.data) == (Mode.EXECUTABLE, Mode.LINK, b"folder/x.py")


def test_a_file_may_become_a_folder_and_a_folder_a_file(base: Path, tmp_path: Path) -> None:
    after = {**BASE, "f.txt/inner": "x", "folder": "now a file\n"}
    after = {
        name: content for name, content in after.items() if name not in {"f.txt", "folder/x.py"}
    }
    found = see(base, diff(tmp_path / "d", BASE, after))
    assert found.breaches == ()
    assert len(found.changes) == 4


@pytest.mark.parametrize(
    ("before", "after"),
    [("", Link("nowhere")), (Link("nowhere"), "text\n"), (Script("x\n"), Link("f.txt"))],
)
def test_a_file_may_become_a_link_and_a_link_a_file(
    tmp_path: Path, before: str | Link | Script, after: str | Link | Script
) -> None:
    base = write_files(tmp_path / "base", {"b": before})
    found = see(base, diff(tmp_path / "d", {"b": before}, {"b": after}))
    assert found.breaches == ()
    (change,) = found.changes
    assert change.before is not None
    assert change.after is not None
    assert (change.before.mode is Mode.LINK) is not (change.after.mode is Mode.LINK)


def test_the_same_path_twice_is_refused_unless_its_type_changes(base: Path, tmp_path: Path) -> None:
    gone = diff(tmp_path / "gone", {"f.txt": "a\n"}, {})
    back = diff(tmp_path / "back", {}, {"f.txt": "b\n"})
    found = see(base, gone + back)
    assert BreachKind.DUPLICATE_PATH in {breach.kind for breach in found.breaches}


NAME = st.sampled_from(["a", "b", "c d", "ü", "x.py"])
CONTENT = st.one_of(
    st.text("ab\n", max_size=30),
    st.binary(max_size=30),
    st.text("ab\n", max_size=10).map(Script),
    st.sampled_from(["nowhere", "not/there"]).map(Link),
)
TREES = st.dictionaries(st.lists(NAME, min_size=1, max_size=2).map("/".join), CONTENT, max_size=6)


def _is_possible(files: Files) -> bool:
    """No file is a folder as well."""
    return not any(other.startswith(f"{name}/") for name in files for other in files)


@settings(max_examples=40)
@given(TREES.filter(_is_possible), TREES.filter(_is_possible), st.booleans())
def test_an_honest_patch_is_understood_exactly(
    tmp_path_factory: pytest.TempPathFactory, before: Files, after: Files, full: bool
) -> None:
    folder = tmp_path_factory.mktemp("honest")
    base = write_files(folder / "base", before)
    patch = diff(folder / "d", before, after, *(["--full-index"] if full else []))
    found = see(base, patch)
    if not patch:
        assert [breach.kind for breach in found.breaches] == [BreachKind.NO_CHANGE]
        return
    assert found.breaches == ()
    with Tree(folder / "d" / "a") as old, Tree(folder / "d" / "b") as new:
        for change in found.changes:
            path = change.path.decode()
            assert change.before == (old.look(change.path) if path in before else None)
            assert change.after == (new.look(change.path) if path in after else None)


SEEDS = [text.encode() for text, _, _ in HOSTILE.values() if text.strip()]


@settings(max_examples=60)
@given(st.data())
def test_a_garbled_patch_gives_breaches_or_changes_that_pass_the_policy(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    base = write_files(tmp_path_factory.mktemp("garbled"), BASE)
    patch = bytearray(data.draw(st.sampled_from(SEEDS)) + data.draw(st.sampled_from(SEEDS)))
    for _ in range(data.draw(st.integers(1, 4))):
        where = data.draw(st.integers(0, len(patch) - 1))
        patch[where : where + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    found = see(base, bytes(patch))
    assert bool(found.breaches) != bool(found.changes)
    for change in found.changes:
        assert Policy().path_breach(change.path) is None


def _literal(path: str, data: bytes) -> bytes:
    """A new binary file, as git writes it."""
    packed = zlib.compress(data, 9)
    lines = []
    for start in range(0, len(packed), 52):
        row = packed[start : start + 52]
        size = len(row)
        sign = chr(ord("A") + size - 1) if size <= 26 else chr(ord("a") + size - 27)
        lines.append(sign.encode() + base64.b85encode(row + b"\0" * (-size % 4)))
    oid = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\nindex {'0' * 40}..{oid}\n"
    body = b"\n".join(lines)
    return head.encode() + b"GIT binary patch\nliteral %d\n%s\n\n" % (len(data), body)


def test_a_small_patch_that_expands_without_bound_is_stopped(base: Path) -> None:
    patch = _literal("bomb", bytes(30_000_000))
    assert len(patch) < 100_000
    found = see(base, patch)
    assert [breach.kind for breach in found.breaches] == [BreachKind.FILE_TOO_LARGE]
    if hasattr(resource, "prlimit"):
        assert found.breaches[0].path == "", "git was stopped, and did not come to the end"
    assert see(base, _literal("fits", bytes(19_000_000))).breaches == ()


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        (Policy(max_patch_bytes=100), BreachKind.PATCH_TOO_LARGE),
        (Policy(max_file_bytes=100), BreachKind.FILE_TOO_LARGE),
        (Policy(max_total_bytes=5_000), BreachKind.TOTAL_TOO_LARGE),
        (Policy(max_files=2), BreachKind.TOO_MANY_FILES),
    ],
)
def test_each_limit_has_its_own_reason(
    base: Path, tmp_path: Path, policy: Policy, kind: BreachKind
) -> None:
    after = {**BASE, "n1": os.urandom(3000), "n2": os.urandom(3000), "n3": ""}
    found = see(base, diff(tmp_path / "d", BASE, after), policy)
    assert [breach.kind for breach in found.breaches] == [kind]


def test_a_base_that_is_a_pipe_is_named_and_does_not_hang(base: Path) -> None:
    os.mkfifo(base / "pipe")
    found = see(base, empty("pipe").encode())
    assert [breach.kind for breach in found.breaches] == [BreachKind.SPECIAL_FILE]


def test_the_settings_of_the_user_take_no_part(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Config, attributes, filters and GIT_ variables that would break or bend everything."""
    home = tmp_path / "home"
    home.mkdir()
    ran = tmp_path / "ran"
    (home / ".gitconfig").write_text(
        "[apply]\n\twhitespace = error-all\n\tignoreWhitespace = change\n[index]\n\tversion = 4\n"
        f"[core]\n\tautocrlf = true\n\tfsmonitor = touch {ran}\n\thooksPath = {home}\n"
        f'[filter "x"]\n\tsmudge = touch {ran}\n\tclean = touch {ran}\n'
    )
    (home / "post-index-change").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (home / "post-index-change").chmod(0o755)
    (base / ".gitattributes").write_text("* filter=x text\n")
    patch = diff(tmp_path / "d", BASE, {**BASE, "f.txt": "a  \nb\nc\n", "crlf.txt": "a\r\n"})
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", "/nonexistent")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'apply.whitespace=error-all'")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nonexistent/index")
    found = see(base, patch)
    assert found.breaches == ()
    assert {c.path: c.after and c.after.data for c in found.changes} == {
        b"f.txt": b"a  \nb\nc\n",
        b"crlf.txt": b"a\r\n",
    }
    assert not ran.exists()


def test_a_folder_inside_a_bigger_repository_is_inspected_alike(tmp_path: Path) -> None:
    """There plain ``git apply`` says yes and does nothing."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    base = write_files(tmp_path / "sub" / "base", BASE)
    found = see(base, diff(tmp_path / "sub" / "d", BASE, {**BASE, "f.txt": "z\n"}))
    assert [change.path for change in found.changes] == [b"f.txt"]
