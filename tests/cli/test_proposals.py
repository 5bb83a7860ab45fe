"""``agentcanvas proposals``: the list, the diff, the numbers, and what to look at twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli import fake_office as fake
from tests.cli.commanding import Desk, desk
from tests.cli.fake_office import FakeOffice, Played, finished, propose, two_reviews
from tests.cli.pseudo_terminal import at_terminal

__all__ = ["desk"]

pytestmark = pytest.mark.req("R1", "D13")

RUN = fake.RUN
TOKEN = "ghp_" + "".join("aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5")
RISKY = f"""\
diff --git a/.envrc b/.envrc
new file mode 100755
index 0000000..1111111
--- /dev/null
+++ b/.envrc
@@ -0,0 +1 @@
+export T={TOKEN}
diff --git a/blob b/blob
index 1111111..2222222 100644
GIT binary patch
literal 1
IcmZPo000310RR91

literal 1
IcmZPo000310RR91

diff --git a/gone b/gone
deleted file mode 100644
index 1111111..0000000
--- a/gone
+++ /dev/null
@@ -1,2 +0,0 @@
-a
-\x1b[31mb
""".encode()


def test_the_list_says_what_waits_and_how_large_it_is(desk: Desk) -> None:
    result = desk.give(FakeOffice(propose(Played())), "proposals")
    assert result.exit_code == 0
    for said in (RUN, "task-1", "in review", "1 file, +1", "parse() strips each part"):
        assert said in result.stdout


def test_nothing_that_waits_is_said_so_and_all_shows_the_rest(desk: Desk) -> None:
    office = FakeOffice(finished(Played()))
    assert "No proposal waits" in desk.give(office, "proposals").stdout
    assert "applied" in desk.give(office, "proposals", "--all").stdout
    assert "Nothing was proposed yet" in desk.give(FakeOffice(), "proposals", "--all").stdout


@pytest.mark.parametrize("words", [["task-1"], [RUN], [RUN, "task-1"], ["101500"]], ids=" ".join)
def test_a_run_or_a_task_shows_the_diff_and_how_to_decide(desk: Desk, words: list[str]) -> None:
    result = desk.give(FakeOffice(propose(Played())), "proposals", *words)
    assert result.exit_code == 0
    assert '-    return text.split(",")' in result.stdout
    assert f"Decide: agentcanvas review {RUN} task-1" in result.stdout


def test_whoever_is_not_asked_is_not_told_to_decide(desk: Desk) -> None:
    played = propose(Played())
    played.asks.clear()
    result = desk.give(FakeOffice(played), "proposals", "task-1")
    assert "in review" in result.stdout
    assert "Decide" not in result.stdout


def test_a_task_is_shown_also_when_it_is_decided(desk: Desk) -> None:
    result = desk.give(FakeOffice(finished(Played())), "proposals", "task-1")
    assert "src/parser.py" in result.stdout
    assert "Decide" not in result.stdout


@pytest.mark.req("U2")
def test_an_earlier_attempt_is_shown_by_its_number(desk: Desk) -> None:
    office = FakeOffice(propose(Played()))
    shown = desk.give(office, "proposals", "task-1", "--attempt", "1")
    assert "+    return [part.strip()" in shown.output
    gone = desk.give(office, "proposals", "task-1", "--attempt", "7")
    assert (gone.exit_code, "has no attempt 7; it has 1 to 1" in gone.output) == (1, True)
    all_of_them = desk.give(office, "proposals", "--attempt", "1")
    assert (all_of_them.exit_code, "about one task" in all_of_them.output) == (2, True)


def test_stat_counts_lines_by_file(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake, "PATCH", RISKY)
    result = desk.give(FakeOffice(propose(Played())), "proposals", "--stat")
    assert result.exit_code == 0
    assert " .envrc | 1 + (new)" in result.stdout
    assert " blob | binary" in result.stdout
    assert " gone | 2 -- (deleted)" in result.stdout
    assert "+export" not in result.stdout


def test_secrets_and_files_that_run_are_pointed_out_and_not_repeated(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake, "PATCH", RISKY)
    office = FakeOffice(propose(Played()))
    listed = desk.give(office, "proposals").stdout
    assert "3 notes" in listed
    shown = desk.give(office, "proposals", "--stat").stdout
    assert "! .envrc:1 looks like a secret (github_token)" in shown
    assert "! .envrc runs when a shell enters its folder" in shown
    assert "! .envrc is a new executable file" in shown
    assert TOKEN not in shown
    assert "\x1b[31m" not in desk.give(office, "proposals", "task-1").stdout


def test_proposals_that_meet_are_named(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    office = FakeOffice(two_reviews(Played()))

    async def patch(run_id: str, task_id: str, attempt: int | None = None) -> bytes:
        sound = fake.PATCH.replace(b"-1,3 +1,3", b"-1,2 +1,2")
        return sound.replace(b"part.strip()", task_id.encode()).replace(
            b"2222222", b"222222" + task_id[-1:].encode()
        )

    monkeypatch.setattr(office, "patch", patch)
    result = desk.give(office, "proposals")
    met = "src/parser.py, line 2, is changed by"
    assert f"! {met} {RUN}/task-1, {RUN}/task-2" in result.stdout
    lines = desk.give(office, "proposals", "--json").stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["taskId"] for row in rows] == ["task-1", "task-2"]
    assert rows[0]["files"] == ["src/parser.py"]
    assert rows[0]["collisions"][0]["kind"] == "same_lines"


WRONG = [
    (["nowhere"], 1, "There is no run nowhere"),
    ([RUN, "task-9"], 1, "There is no task task-9"),
    (["--stat", "--json"], 2, "--stat or --json"),
]


@pytest.mark.parametrize(("words", "code", "said"), WRONG)
def test_what_is_not_there_is_one_sentence(
    desk: Desk, words: list[str], code: int, said: str
) -> None:
    result = desk.give(FakeOffice(propose(Played())), "proposals", *words)
    assert result.exit_code == code
    assert said in result.stderr


def test_a_patch_that_cannot_be_read_is_still_shown(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake, "PATCH", b"hello\n")
    result = desk.give(FakeOffice(propose(Played())), "proposals", "task-1")
    assert result.exit_code == 0
    assert "hello" in result.stdout


def test_at_a_terminal_the_diff_is_coloured(tmp_path: Path) -> None:
    (tmp_path / ".agentcanvas").mkdir()
    with at_terminal("parked", "proposals", "task-1", cwd=tmp_path) as person:
        person.sees("+    return [part.strip()")
        assert person.leaves() == 0
        assert b"\x1b[31m-    return" in person.raw
        assert b"\x1b[32m+    return" in person.raw


@pytest.mark.parametrize("columns", ["40", "60", "80", "120"])
def test_a_run_and_a_task_are_whole_in_any_window(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    run = "run_20261119_211205_ab"
    head, row, *_ = desk.give(FakeOffice(propose(Played(run))), "proposals").stdout.splitlines()
    assert row.split()[:2] == [run, "task-1"]
    assert "…" not in head
    assert max(len(head), len(row)) <= int(columns)
