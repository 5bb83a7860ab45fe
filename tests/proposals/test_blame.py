"""Who stands in the way of a proposal, as its refusal says it (D7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.errors import ApplyConflict
from agentcanvas.proposals.apply import Landing
from tests.proposals.workspaces import Files, diff, scene, write_files

pytestmark = [pytest.mark.anyio, pytest.mark.req("D7")]

TEN = "".join(f"{n}\n" for n in range(10))
FIVE: Files = {"f": TEN.replace("5", "five")}


@pytest.mark.parametrize(
    ("landed", "edited", "said"),
    [
        ([], TEN.replace("5", "mine"), "line 6 has changed since, by you"),
        ([], "new\n" + TEN.replace("5", "mine"), "line 7 has changed since, by you"),
        ([], TEN.replace("5", "mine").replace("1", "I"), "line 6 has changed since, by you"),
        ([], None, "it was deleted since, by you"),
        ([TEN.replace("5", "V")], "", "line 6 has changed since, by p1"),
        ([TEN.replace("5", "V"), TEN.replace("5", "W")], "", "has changed since, by p1 and p2"),
        ([TEN.replace("5", "V")], TEN.replace("5", "Vv"), "has changed since, by p1 and you"),
    ],
    ids=["an edit", "moved down", "two edits", "deleted", "landed", "a chain", "both"],
)
async def test_a_conflict_names_the_line_and_whoever_changed_it(
    tmp_path: Path, landed: list[str], edited: str | None, said: str
) -> None:
    ready = scene(tmp_path, {"f": TEN}, FIVE)
    landing = Landing(ready.workspace)
    before = TEN
    for number, text in enumerate(landed, start=1):
        patch = diff(tmp_path / f"d{number}", {"f": before}, {"f": text})
        base = write_files(tmp_path / f"g{number}", {"f": before})
        await landing.apply(f"p{number}", patch, base)
        before = text
    file = ready.workspace / "f"
    if edited is None:
        file.unlink()
    elif edited:
        file.write_text(edited)
    with pytest.raises(ApplyConflict) as refused:
        await landing.apply("mine", ready.patch, ready.base)
    assert said in str(refused.value)
    (conflict,) = (await landing.check(ready.patch, ready.base)).conflicts
    assert said in conflict.detail


async def test_what_was_taken_back_is_blamed_for_nothing(tmp_path: Path) -> None:
    ready = scene(tmp_path, {"f": TEN}, FIVE)
    landing = Landing(ready.workspace)
    other = diff(tmp_path / "d", {"f": TEN}, {"f": TEN.replace("5", "V")})
    await landing.apply("p1", other, ready.base)
    await landing.undo("p1")
    (ready.workspace / "f").write_text(TEN.replace("5", "V"))
    with pytest.raises(ApplyConflict, match="line 6 has changed since, by you"):
        await landing.apply("mine", ready.patch, ready.base)


async def test_a_new_file_that_is_there_by_now_is_named_with_whoever_made_it(
    tmp_path: Path,
) -> None:
    ready = scene(tmp_path, {"f": TEN}, {"f": TEN, "n": "new\n"})
    (ready.workspace / "n").write_text("mine\n")
    with pytest.raises(ApplyConflict, match="n: another file of this name was made since, by you"):
        await Landing(ready.workspace).apply("mine", ready.patch, ready.base)
