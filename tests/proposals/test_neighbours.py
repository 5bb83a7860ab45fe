"""A new name fits beside what is there also on a disk that ignores case."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agentcanvas.errors import UnsafePatch
from agentcanvas.proposals.apply import Landing
from agentcanvas.proposals.neighbours import clashes
from agentcanvas.proposals.policy import BreachKind
from agentcanvas.proposals.tree import Tree
from tests.proposals.workspaces import Files, scene, shot, write_files

pytestmark = pytest.mark.req("S6")

BEFORE: Files = {
    "README.md": "r\n",
    "src/app.py": "a\n",
    "src/deep/one": "1\n",
    "caf\u00e9/menu": "m\n",
    "Makefile": "both\n",
    "makefile": "are there\n",
}
CLASHES = {
    "a file beside a file": ({"readme.md": "x"}, "readme.md", "README.md"),
    "a file beside a folder": ({"SRC": "x"}, "SRC", "src"),
    "a folder beside a file": ({"Readme.md/x": "x"}, "Readme.md/x", "README.md"),
    "a folder beside a folder": ({"Src/app2.py": "x"}, "Src/app2.py", "src"),
    "deep below": ({"src/Deep/two": "x"}, "src/Deep/two", "src/deep"),
    "an accent written in two ways": ({"cafe\u0301/x": "x"}, "cafe\u0301/x", "caf\u00e9"),
    "letters that fold to others": ({"stra\u00dfe": "x", "STRASSE": "x"}, "stra\u00dfe", "STRASSE"),
    "two new folders": ({"new/x": "x", "New/y": "y"}, "new/x", "New"),
    "beside two that are there": ({"MAKEFILE": "x"}, "MAKEFILE", "Makefile"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("case", CLASHES)
async def test_a_new_name_that_differs_in_case_only_is_refused_and_nothing_lands(
    tmp_path: Path, case: str
) -> None:
    new, path, other = CLASHES[case]
    ready = scene(tmp_path, BEFORE, {**BEFORE, **new})
    before = shot(ready.workspace)
    landing = Landing(ready.workspace)
    (breach,) = (await landing.check(ready.patch, ready.base)).breaches
    assert (breach.kind, breach.path) == (BreachKind.NAME_CLASH, path)
    assert breach.detail == f"is the same as {other} on a case-insensitive disk"
    with pytest.raises(UnsafePatch, match="case-insensitive disk"):
        await landing.apply("p1", ready.patch, ready.base)
    assert shot(ready.workspace) == before


@pytest.mark.anyio
@pytest.mark.parametrize("mine", ["Notes.txt", "NEW", "New/mine"])
async def test_a_file_that_the_user_has_made_meanwhile_counts_as_well(
    tmp_path: Path, mine: str
) -> None:
    ready = scene(tmp_path, BEFORE, {**BEFORE, "notes.txt": "n\n", "new/x": "x\n"})
    write_files(ready.workspace, {mine: "mine\n"})
    before = shot(ready.workspace)
    landing = Landing(ready.workspace)
    (breach,) = (await landing.check(ready.patch, ready.base)).breaches
    assert breach.kind is BreachKind.NAME_CLASH
    assert breach.detail.startswith(f"is the same as {mine.partition('/')[0]} on")
    with pytest.raises(UnsafePatch, match="case-insensitive disk"):
        await landing.apply("p1", ready.patch, ready.base)
    assert shot(ready.workspace) == before


@pytest.mark.anyio
async def test_a_folder_that_the_user_made_a_file_is_a_conflict_and_no_fault(
    tmp_path: Path,
) -> None:
    after = {path: text for path, text in BEFORE.items() if not path.startswith("src/")}
    ready = scene(tmp_path, BEFORE, {**after, "Src/x": "x\n"})
    shutil.rmtree(ready.workspace / "src")
    (ready.workspace / "src").write_text("mine\n")
    before = shot(ready.workspace)
    with pytest.raises(UnsafePatch, match="case-insensitive disk"):
        await Landing(ready.workspace).apply("p1", ready.patch, ready.base)
    assert shot(ready.workspace) == before


TAKEN_FOR_ANOTHER = {
    "a dot at the end": ({"README.md.": "x"}, "README.md.", "README.md"),
    "blanks and dots at the end": ({"readme.md . .": "x"}, "readme.md . .", "README.md"),
    "a folder with a blank at the end": ({"src /b.py": "x"}, "src /b.py", "src"),
    "a stream of a file": ({"README.md:x": "x"}, "README.md:x", "README.md"),
    "a stream of a folder": ({"SRC::$DATA": "x"}, "SRC::$DATA", "src"),
    "letters that nobody sees": ({"READ\u200cME.md": "x"}, "READ\u200cME.md", "README.md"),
    "two new ones": ({"new": "x", "new.": "y"}, "new.", "new"),
    "a stream of a new one": ({"new": "x", "New:y": "y"}, "new", "New:y"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("case", TAKEN_FOR_ANOTHER)
async def test_a_new_name_that_some_disks_take_for_another_is_refused(
    tmp_path: Path, case: str
) -> None:
    new, path, other = TAKEN_FOR_ANOTHER[case]
    ready = scene(tmp_path, BEFORE, {**BEFORE, **new})
    before = shot(ready.workspace)
    landing = Landing(ready.workspace)
    (breach,) = (await landing.check(ready.patch, ready.base)).breaches
    assert (breach.kind, breach.path) == (BreachKind.NAME_CLASH, path)
    assert breach.detail == f"is the same as {other} on some disks"
    with pytest.raises(UnsafePatch, match="is the same as"):
        await landing.apply("p1", ready.patch, ready.base)
    assert shot(ready.workspace) == before


FITTING: dict[str, Files] = {
    "a file that changes its case": {"README.md": "", "readme.md": "r\n"},
    "a folder that changes its case": {
        "src/app.py": "",
        "src/deep/one": "",
        "Src/app.py": "a\n",
        "Src/deep/one": "1\n",
    },
    "a file in the place of a folder, in capitals": {
        "src/app.py": "",
        "src/deep/one": "",
        "SRC": "x\n",
    },
    "edits of two that are there": {"Makefile": "m\n", "makefile": "n\n"},
    "more in a folder that is there": {"src/deep/two": "2\n", "src/ap": "x\n"},
    "a file that loses a dot": {"README.md": "", "README.md.": "r\n"},
    "names with a colon beside each other": {"man/A::B.3": "b\n", "man/A::C.3": "c\n"},
    "what only looks alike": {"README\u00b2.md": "x\n", "README2.md": "y\n", "src.py": "z\n"},
}


@pytest.mark.anyio
@pytest.mark.parametrize("case", FITTING)
async def test_what_leaves_one_name_of_each_spelling_lands(tmp_path: Path, case: str) -> None:
    after = {path: text for path, text in {**BEFORE, **FITTING[case]}.items() if text}
    ready = scene(tmp_path, BEFORE, after)
    await Landing(ready.workspace).apply("p1", ready.patch, ready.base)
    assert shot(ready.workspace) == shot(write_files(tmp_path / "expected", after))


def test_what_stays_of_a_folder_counts_though_most_of_it_goes(tmp_path: Path) -> None:
    with Tree(write_files(tmp_path / "base", BEFORE)) as base:
        found = list(clashes([b"Src/app.py"], base, gone={b"src/app.py"}))
        assert [breach.path for breach in found] == ["Src/app.py"]
        assert list(clashes([b"Src/app.py"], base, gone={b"src/app.py", b"src/deep/one"})) == []
