"""How a command ends, whatever was raised in it and however deep."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
import typer

from agentcanvas.cli.offices import complain, finish, misused, tell_of_settings
from agentcanvas.errors import ValidationError
from agentcanvas.store import Store
from tests.cli.pseudo_terminal import ROOT


def code_after(raised: BaseException) -> int:
    async def main() -> int:
        raise raised

    with pytest.raises(typer.Exit) as ended:
        finish(main)
    return int(ended.value.exit_code)


def deep(error: BaseException) -> BaseException:
    """As it comes out of task groups."""
    return BaseExceptionGroup("outer", [BaseExceptionGroup("inner", [error])])


@pytest.mark.parametrize("wrap", [lambda error: error, deep], ids=["bare", "grouped"])
def test_an_error_of_ours_is_one_sentence_and_1(
    capsys: pytest.CaptureFixture[str],
    wrap: object,
) -> None:
    assert callable(wrap)
    assert code_after(wrap(ValidationError("There is no run x"))) == 1
    assert capsys.readouterr().err == "agentcanvas: There is no run x\n"


@pytest.mark.parametrize("wrap", [lambda error: error, deep], ids=["bare", "grouped"])
def test_wrong_usage_found_late_is_still_2(wrap: object) -> None:
    assert callable(wrap)
    assert code_after(wrap(misused("No."))) == 2


def test_an_interrupt_is_130() -> None:
    assert code_after(deep(KeyboardInterrupt())) == 130


@pytest.mark.parametrize("wrap", [lambda error: error, deep], ids=["bare", "grouped"])
def test_what_is_wrong_with_the_machine_is_a_sentence(
    capsys: pytest.CaptureFixture[str], wrap: object
) -> None:
    assert callable(wrap)
    assert code_after(wrap(OSError(errno.ENOSPC, "No space left on device", "/w/x"))) == 1
    assert capsys.readouterr().err == (
        "agentcanvas: /w/x: No space left on device. "
        "Mend that, then try again: agentcanvas doctor\n"
    )


def test_settings_that_do_not_hold_are_told_with_the_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tell_of_settings(tmp_path)
    assert capsys.readouterr().err == ""
    (tmp_path / "agentcanvas.yaml").write_text("queue: {messages: 5}\n")
    tell_of_settings(tmp_path)
    assert capsys.readouterr().err == (
        "agentcanvas: agentcanvas.yaml does not hold yet: nobody has trusted it as it is. "
        "Look, then: agentcanvas trust\n"
    )


def test_what_nobody_foresaw_is_not_hidden() -> None:
    async def main() -> int:
        raise deep(ZeroDivisionError("a bug"))

    with pytest.raises(ZeroDivisionError):
        finish(main)


def test_a_sentence_with_words_of_an_agent_in_it_is_made_harmless(
    capsys: pytest.CaptureFixture[str],
) -> None:
    complain("bad \x1b[2J name\nsecond line")
    assert capsys.readouterr().err == "agentcanvas: bad \\x1b[2J name\nsecond line\n"


@pytest.mark.parametrize("words", [["show"], ["review", "task-1"], ["review", "--apply"]])
def test_a_reader_that_went_away_is_no_error_to_write_about(
    tmp_path: Path, words: list[str]
) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.fake_office", "parked", *words],
        stdout=write,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    os.close(write)
    assert done.stderr == b""
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (("runs",), "No runs yet", 0),
        (("show",), "No runs yet", 1),
        (("report",), "No runs yet", 1),
        (("review", "--list"), "Nothing waits for you", 0),
        (("proposals",), "No proposal waits", 0),
        (("undo", "--yes"), "No runs yet", 1),
        (("stop",), "No runs yet", 1),
        (("store", "restore", "nowhere.db"), "There is no store at nowhere.db", 1),
    ],
)
def test_looking_where_nothing_is_on_record_leaves_nothing_behind(
    tmp_path: Path, words: tuple[str, ...], said: str, code: int
) -> None:
    done = command(*words, cwd=tmp_path)
    assert said in done.stdout + done.stderr
    assert done.returncode == code
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_restored_into_a_fresh_clone_is_kept_from_git(tmp_path: Path) -> None:
    place = tmp_path / "clone"
    place.mkdir()
    anyio.run(make_store, tmp_path / "backup.db")
    assert command("store", "restore", "../backup.db", cwd=place).returncode == 0
    assert (place / ".agentcanvas" / ".gitignore").exists()


async def make_store(path: Path) -> None:
    async with await Store.open(path):
        pass


def command(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from agentcanvas.cli import main; main()", *words]
    return subprocess.run(program, cwd=cwd, capture_output=True, text=True, check=False)
