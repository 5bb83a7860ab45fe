"""Taking back a proposal in the middle of the chain, and two that land at the same time."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import groupby, pairwise
from pathlib import Path
from random import Random

import anyio
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from agentcanvas.errors import ApplyConflict
from agentcanvas.proposals.apply import Landing
from tests.proposals.repositories import COMMIT, everything, git, repository
from tests.proposals.workspaces import Files, Scene, diff, scene, shot, write_files

pytestmark = [pytest.mark.req("S6", "D7")]

TEN = "".join(f"{n}\n" for n in range(10))
TWENTY = "".join(f"{n}\n" for n in range(20))


async def chain(folder: Path, *trees: Files) -> Scene:
    """Land p1, p2, … from each tree to the next."""
    ready = scene(folder, trees[0], trees[1])
    for number, (before, after) in enumerate(pairwise(trees), start=1):
        patch = diff(folder / f"d{number}", before, after)
        base = write_files(folder / f"g{number}", before)
        await Landing(ready.workspace).apply(f"p{number}", patch, base)
    return ready


MIDDLE: dict[str, tuple[Files, Files, Files]] = {
    "the same line": ({"f": TEN}, {"f": TEN.replace("5", "five")}, {"f": TEN.replace("5", "V")}),
    "a file it made": ({"f": "f\n"}, {"f": "f\n", "n": "1\n"}, {"f": "f\n", "n": "2\n"}),
    "a file it deleted, made anew": (
        {"f": "f\n", "n": "1\n"},
        {"f": "f\n"},
        {"f": "f\n", "n": "2\n"},
    ),
    "a file it changed, deleted": (
        {"f": "f\n", "n": "1\n"},
        {"f": "f\n", "n": "2\n"},
        {"f": "f\n"},
    ),
    "a file it made, deleted": ({"f": "f\n"}, {"f": "f\n", "n": "1\n"}, {"f": "f\n"}),
    "a file it deleted, made anew as it was": (
        {"f": "f\n", "n": "1\n"},
        {"f": "f\n"},
        {"f": "f\n", "n": "1\n"},
    ),
    "a line, as it was": ({"f": TEN}, {"f": TEN.replace("5", "five")}, {"f": TEN}),
    "a line as it was, and another": (
        {"f": TEN},
        {"f": TEN.replace("5", "five")},
        {"f": TEN.replace("9", "nine")},
    ),
}


@pytest.mark.anyio
@pytest.mark.parametrize("case", MIDDLE)
async def test_later_work_that_stands_on_it_is_named_and_nothing_changes(
    tmp_path: Path, case: str
) -> None:
    ready = await chain(tmp_path, *MIDDLE[case])
    before = shot(ready.workspace)
    with pytest.raises(ApplyConflict, match=r"stands on p1: .*p2 changed it since") as told:
        await Landing(ready.workspace).undo("p1")
    assert len(told.value.conflicts) == 1
    assert "Take back p2 first" in str(told.value)
    assert shot(ready.workspace) == before
    for name in ("p2", "p1"):
        await Landing(ready.workspace).undo(name)
    assert shot(ready.workspace) == shot(ready.base)


@pytest.mark.anyio
@pytest.mark.req("D16")
async def test_a_commit_that_a_later_one_took_back_is_left_to_that_one(tmp_path: Path) -> None:
    """Else taking back the later one would bring back what nobody has asked for any more."""
    ready = repository(tmp_path, {"f": "f\n"}, {"f": "f\n", "n": "1\n"})
    landing = Landing(ready.workspace)
    await landing.apply("p1", ready.patch, ready.base, way=COMMIT)
    later = write_files(tmp_path / "g1", {"f": "f\n", "n": "1\n"})
    gone = diff(tmp_path / "d2", {"f": "f\n", "n": "1\n"}, {"f": "f\n"})
    await landing.apply("p2", gone, later, way=COMMIT)
    before = everything(ready.workspace)
    with pytest.raises(ApplyConflict, match=r"stands on p1: n: p2 changed it since"):
        await landing.undo("p1")
    assert everything(ready.workspace) == before
    await landing.undo("p2")
    await landing.undo("p1")
    assert shot(ready.workspace).keys() - {"f"} == {
        path for path in shot(ready.workspace) if path.startswith(".git/")
    }


@pytest.mark.anyio
async def test_what_the_user_took_back_by_hand_is_nothing_left_to_do(tmp_path: Path) -> None:
    ready = await chain(tmp_path, {"f": "f\n"}, {"f": "f\n", "n": "1\n"}, {"f": "g\n", "n": "1\n"})
    (ready.workspace / "n").unlink()
    assert (await Landing(ready.workspace).undo("p1")).changed_files == ()
    await Landing(ready.workspace).undo("p2")
    assert shot(ready.workspace) == shot(ready.base)


@pytest.mark.anyio
async def test_a_chain_of_followers_is_named_whole_and_what_was_undone_is_not(
    tmp_path: Path,
) -> None:
    versions = [{"f": TEN.replace("5", word)} for word in ("5", "a", "b", "c")]
    ready = await chain(tmp_path, *versions)
    landing = Landing(ready.workspace)
    with pytest.raises(ApplyConflict, match=r"f: p2, p3 changed it since\. Take back p3 first"):
        await landing.undo("p1")
    await landing.undo("p3")
    with pytest.raises(ApplyConflict, match="f: p2 changed it since"):
        await landing.undo("p1")


@pytest.mark.anyio
async def test_an_edit_of_the_user_is_not_blamed_on_a_proposal(tmp_path: Path) -> None:
    ready = await chain(tmp_path, {"f": TEN}, {"f": TEN.replace("5", "five")})
    (ready.workspace / "f").write_text(TEN.replace("5", "mine"))
    with pytest.raises(ApplyConflict, match="you changed the same lines") as refused:
        await Landing(ready.workspace).undo("p1")
    assert "Set these edits aside, or ask for a change that undoes it." in str(refused.value)


@pytest.mark.anyio
@pytest.mark.req("D16")
async def test_a_commit_in_the_middle_is_reverted_three_way(tmp_path: Path) -> None:
    texts = [TEN, TEN.replace("1\n", "one\n")]
    texts.append(texts[1].replace("8\n", "eight\n"))
    ready = repository(tmp_path, {"f": texts[0]}, {"f": texts[1]})
    landing = Landing(ready.workspace)
    await landing.apply("p1", ready.patch, ready.base, way=COMMIT)
    second = diff(tmp_path / "d2", {"f": texts[1]}, {"f": texts[2]})
    await landing.apply("p2", second, write_files(tmp_path / "g1", {"f": texts[1]}), way=COMMIT)
    await landing.undo("p1")
    assert (ready.workspace / "f").read_text() == TEN.replace("8\n", "eight\n")
    assert git(ready.workspace, "show", "HEAD:f") == TEN.replace("8\n", "eight\n")
    assert git(ready.workspace, "status", "--porcelain") == ""
    third = {"f": TEN.replace("8\n", "VIII\n")}
    base = write_files(tmp_path / "g3", {"f": TEN.replace("8\n", "eight\n")})
    patch = diff(tmp_path / "d3", {"f": TEN.replace("8\n", "eight\n")}, third)
    await landing.apply("p3", patch, base, way=COMMIT)
    before = everything(ready.workspace)
    with pytest.raises(ApplyConflict):
        await landing.undo("p2")
    assert everything(ready.workspace) == before


@settings(max_examples=12)
@example([(0, "x"), (0, "a"), (1, "y")], Random(1))
@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abcxyz")), min_size=2, max_size=4),
    st.randoms(use_true_random=False),
)
@pytest.mark.anyio
async def test_undone_in_any_order_it_ends_where_it_began(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[int, str]], chance: Random
) -> None:
    """Each step changes one of three places, or takes it back; a refused undo changes nothing and
    goes later."""
    folder = tmp_path_factory.mktemp("chain")
    words = ["a", "b", "c"]
    trees: list[Files] = [{"f": _text(words)}]
    for number, (place, letter) in enumerate(edits):
        words[place] = letter if letter == "abc"[place] else f"{letter}{number}"
        if trees[-1] != {"f": _text(words)}:
            trees.append({"f": _text(words)})
    assume(len(trees) > 1)
    ready = await chain(folder, *trees)
    landing = Landing(ready.workspace)
    left = [f"p{number}" for number in range(1, len(trees))]
    chance.shuffle(left)
    while left:
        undone = []
        for name in left:
            before = shot(ready.workspace)
            try:
                await landing.undo(name)
                undone.append(name)
            except ApplyConflict:
                assert shot(ready.workspace) == before
        assert undone, "the latest one can always be taken back"
        left = [name for name in left if name not in undone]
    assert shot(ready.workspace) == shot(ready.base)


def _text(words: list[str]) -> str:
    return "\n\n\n\n".join(words) + "\n"


# Two at once -------------------------------------------------------------------------------------

APPLIER = """
import json, os, sys
from pathlib import Path
import anyio
from agentcanvas.proposals.apply import Landing

order = json.loads(sys.argv[1])
log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def step(name):
    os.write(log, f"{order['who']} {name}\\n".encode())

async def main():
    landing = Landing(Path(order["workspace"]), step=step)
    sys.stdout.write("ready\\n")
    sys.stdout.flush()
    sys.stdin.readline()
    for name, patch in order["patches"]:
        await landing.apply(name, Path(patch).read_bytes(), Path(order["base"]))

anyio.run(main)
"""


def test_two_processes_at_once_take_turns(tmp_path: Path) -> None:
    """Ten proposals on one file from two processes: their steps never mix, and all ten land."""
    before: Files = {"shared": "".join(f"line {n}\n\n\n\n" for n in range(10))}
    ready = scene(tmp_path, before, before)
    log = tmp_path / "log"
    workers = []
    for who in (0, 1):
        patches = []
        for number in range(who, 10, 2):
            text = str(before["shared"]).replace(f"line {number}\n", f"LINE {number}\n")
            patch = tmp_path / f"{number}.patch"
            patch.write_bytes(diff(tmp_path / f"d{number}", before, {"shared": text}))
            patches.append((f"p{number}", str(patch)))
        order = {
            "who": who,
            "log": str(log),
            "workspace": str(ready.workspace),
            "base": str(ready.base),
            "patches": patches,
        }
        workers.append(
            subprocess.Popen(
                [sys.executable, "-c", APPLIER, json.dumps(order)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    for worker in workers:
        assert worker.stdout
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        worker.communicate()
        assert worker.returncode == 0
    assert (ready.workspace / "shared").read_text() == str(before["shared"]).upper()
    lines = log.read_text().splitlines()
    blocks = [list(block) for _, block in groupby(lines, key=lambda line: line.split()[0])]
    for block in blocks:
        assert block[0].endswith(" locked"), "whoever begins a stretch has just got the lock"
        assert block[-1].endswith(" tidy:new"), "and goes on to the end of an apply"
    assert sum(line.endswith(" locked") for line in lines) == 10


@pytest.mark.anyio
@pytest.mark.req("D3", "D16")
async def test_two_commits_at_once_take_turns(tmp_path: Path) -> None:
    before: Files = {"f": "".join(f"line {n}\n\n\n\n" for n in range(4))}
    ready = repository(tmp_path, before, {"f": "x\n"})

    async def land(number: int) -> None:
        text = str(before["f"]).replace(f"line {number}\n", f"LINE {number}\n")
        patch = diff(tmp_path / f"d{number}", before, {"f": text})
        await Landing(ready.workspace).apply(f"p{number}", patch, ready.base, way=COMMIT)

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(land, number)
    assert git(ready.workspace, "rev-list", "--count", "HEAD") == "5\n"
    assert git(ready.workspace, "show", "HEAD:f") == str(before["f"]).upper()
    assert git(ready.workspace, "status", "--porcelain") == ""


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("lines", "blockers"),
    [
        ((3, 3, 9), ["p2"]),
        ((3, 9, 9, 3), ["p4"]),
        ((3, 9, 3, 3, 9), ["p3", "p4"]),
    ],
    ids=["one above", "the last", "two of four"],
)
async def test_only_what_overlaps_stands_in_the_way_and_taking_it_back_is_enough(
    tmp_path: Path, lines: tuple[int, ...], blockers: list[str]
) -> None:
    trees: list[Files] = [{"f": TWENTY}]
    for number, line in enumerate(lines, start=1):
        rows = str(trees[-1]["f"]).split("\n")
        rows[line] = f"by {number}"
        trees.append({"f": "\n".join(rows)})
    ready = await chain(tmp_path, *trees)
    landing = Landing(ready.workspace)
    with pytest.raises(ApplyConflict) as refused:
        await landing.undo("p1")
    assert f"f: {', '.join(blockers)} changed it since" in str(refused.value)
    assert f"Take back {blockers[-1]} first" in str(refused.value)
    for name in (*reversed(blockers), "p1"):
        await landing.undo(name)


@pytest.mark.anyio
async def test_an_edit_of_the_user_is_not_blamed_on_work_elsewhere_in_the_file(
    tmp_path: Path,
) -> None:
    first = {"f": TWENTY.replace("3\n", "three\n", 1)}
    ready = await chain(tmp_path, {"f": TWENTY}, first, {"f": first["f"].replace("9\n", "IX\n", 1)})
    file = ready.workspace / "f"
    file.write_text(file.read_text().replace("three", "mine"))
    with pytest.raises(ApplyConflict, match="you changed the same lines"):
        await Landing(ready.workspace).undo("p1")
