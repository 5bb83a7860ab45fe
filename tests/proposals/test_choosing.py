"""Chosen files and hunks make a patch of their own, exact to the line (D13)."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcanvas.errors import ProposalMalformed, ValidationError
from agentcanvas.proposals.apply import Landing
from agentcanvas.proposals.choosing import choose, derive, derived_id, parts_of, rest_of
from agentcanvas.proposals.model import (
    Base,
    FileChoice,
    Proposal,
    SandboxPaths,
    decode_proposal,
    encode,
)
from agentcanvas.proposals.patch import inspect
from agentcanvas.proposals.policy import Policy
from agentcanvas.proposals.shelf import ProposalFolder, load
from agentcanvas.proposals.tree import Tree
from agentcanvas.protocol.records import ChangedFile, ChangeStatus, ProposalRef
from tests.proposals.workspaces import Files, Link, Script, Shot, diff, shot, write_files

pytestmark = [pytest.mark.anyio, pytest.mark.req("D13", "D14")]

MANY = "".join(f"line {n}\n" for n in range(60))
THREE = MANY.replace("line 5\n", "five\n").replace("line 30\n", "").replace("line 56\n", "a\nb\n")
BEFORE: Files = {
    "text": MANY,
    "ends": MANY + "no newline",
    "gone": "gone\n",
    "tool": "#!/bin/sh\n",
    "both": MANY,
    "blob": b"\0one",
    "kind": "a file\n",
    "old name": MANY,
}
AFTER: Files = {
    "text": THREE,
    "ends": THREE + "still none",
    "tool": Script("#!/bin/sh\n"),
    "both": Script(THREE),
    "blob": b"\0two",
    "kind": Link("text"),
    "new name": MANY,
    "made": "made\n",
    "empty": "",
}


class Case:
    def __init__(self, folder: Path, before: Files = BEFORE, after: Files = AFTER) -> None:
        self.folder = folder
        self.patch = diff(folder / "diff", before, after)
        self.base = write_files(folder / "base", before)
        self.before = shot(self.base)
        self.after = shot(write_files(folder / "after", after))
        self._count = 0

    def choose(self, *choice: FileChoice) -> bytes:
        with Tree(self.base) as base:
            return choose(self.patch, choice, base)

    async def land(self, patch: bytes) -> Shot:
        """Through the whole gate: names, ids and places of hunks are all checked there."""
        self._count += 1
        with Tree(self.base) as base:
            assert inspect(patch, base, Policy()).breaches == ()
        workspace = self.folder / f"w{self._count}"
        shutil.copytree(self.base, workspace, symlinks=True)
        await Landing(workspace).apply("p", patch, self.base)
        return shot(workspace)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_the_parts_are_files_and_their_hunks(case: Case) -> None:
    parts = {part.path: part for part in parts_of(case.patch)}
    assert {path: part.status for path, part in parts.items()} == {
        "blob": ChangeStatus.MODIFIED,
        "both": ChangeStatus.MODIFIED,
        "empty": ChangeStatus.ADDED,
        "ends": ChangeStatus.MODIFIED,
        "gone": ChangeStatus.DELETED,
        "kind": ChangeStatus.MODIFIED,
        "made": ChangeStatus.ADDED,
        "new name": ChangeStatus.ADDED,
        "old name": ChangeStatus.DELETED,
        "text": ChangeStatus.MODIFIED,
        "tool": ChangeStatus.MODIFIED,
    }
    numbers = {path: [hunk.number for hunk in part.hunks] for path, part in parts.items()}
    assert numbers["text"] == [1, 2, 3]
    assert numbers["ends"] == [1, 2, 3]
    assert numbers["both"] == [0, 1, 2, 3]
    assert numbers["tool"] == [0]
    assert all(numbers[path] == [] for path in ("blob", "empty", "gone", "kind", "made"))


def test_everything_is_the_patch_itself(case: Case) -> None:
    assert case.choose(*(FileChoice(part.path) for part in parts_of(case.patch))) == case.patch


@pytest.mark.parametrize("path", sorted({*BEFORE, *AFTER}))
async def test_one_file_alone_changes_that_file_alone(case: Case, path: str) -> None:
    landed = await case.land(case.choose(FileChoice(path)))
    expected = {k: v for k, v in case.before.items() if k != path}
    if path in case.after:
        expected[path] = case.after[path]
    assert landed == expected


@pytest.mark.parametrize("hunks", [(1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (3, 1)])
@pytest.mark.parametrize("path", ["text", "ends", "both"])
async def test_chosen_hunks_change_their_lines_alone(
    case: Case, path: str, hunks: tuple[int, ...]
) -> None:
    steps = {
        1: ("line 5\n", "five\n"),
        2: ("line 30\n", ""),
        3: ("line 56\n", "a\nb\n"),
    }
    text = case.before[path][1].decode()
    for number in hunks:
        text = text.replace(*steps[number])
    if path == "ends" and 3 in hunks:
        text = text.replace("no newline", "still none")
    landed = await case.land(case.choose(FileChoice(path, hunks)))
    assert landed == case.before | {path: ("file", text.encode())}


async def test_the_change_of_a_mode_is_hunk_0(case: Case) -> None:
    only_mode = await case.land(case.choose(FileChoice("both", (0,))))
    assert only_mode == case.before | {"both": ("script", MANY.encode())}
    mode_and_one = await case.land(case.choose(FileChoice("both", (0, 1))))
    changed = MANY.replace("line 5\n", "five\n").encode()
    assert mode_and_one == case.before | {"both": ("script", changed)}
    assert case.choose(FileChoice("tool", (0,))) == case.choose(FileChoice("tool"))


async def test_half_of_a_rename_is_a_copy_or_a_deletion(case: Case) -> None:
    assert (await case.land(case.choose(FileChoice("new name"))))["old name"][0] == "file"
    assert "old name" not in await case.land(case.choose(FileChoice("old name")))


WRONG: dict[str, tuple[tuple[FileChoice, ...], str]] = {
    "nothing": ((), "Nothing was chosen"),
    "unknown file": ((FileChoice("nowhere"),), "does not change nowhere; it changes blob"),
    "twice": ((FileChoice("text", (1,)), FileChoice("text", (2,))), "text was chosen twice"),
    "unknown hunk": ((FileChoice("text", (1, 9)),), "text has no hunk 9; it has 1, 2, 3"),
    "negative hunk": ((FileChoice("text", (-1,)),), "text has no hunk -1"),
    "no mode to change": ((FileChoice("text", (0,)),), "text has no hunk 0"),
    "no hunk": ((FileChoice("text", ()),), "No hunk of text was chosen"),
    "half a binary": ((FileChoice("blob", (1,)),), "blob is a binary file, which is taken whole"),
    "half a new file": ((FileChoice("made", (1,)),), "made is a new file"),
    "half a deletion": ((FileChoice("gone", (1,)),), "gone is a deleted file"),
    "half a change of type": ((FileChoice("kind", (1,)),), "kind is a file that changes its type"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_choice_that_cannot_be_made_is_refused_by_name(case: Case, wrong: str) -> None:
    choice, words = WRONG[wrong]
    with pytest.raises(ValidationError, match=words):
        case.choose(*choice)


def test_a_file_that_takes_the_place_of_another_is_chosen_with_it(tmp_path: Path) -> None:
    case = Case(tmp_path, {"a": "x\n", "b/in": "x\n"}, {"a/in": "y\n", "b": "y\n"})
    with pytest.raises(ValidationError, match="a/in takes the place of a; choose both or neither"):
        case.choose(FileChoice("a/in"))
    with pytest.raises(ValidationError, match="b takes the place of b/in"):
        case.choose(FileChoice("b"))
    assert case.choose(FileChoice("a/in"), FileChoice("a"))


def test_another_base_is_noticed(case: Case) -> None:
    (case.base / "text").write_text(MANY.replace("line 1\n", "else\n"))
    with pytest.raises(ValidationError, match="another content than the base holds"):
        case.choose(FileChoice("text", (1,)))
    (case.base / "text").unlink()
    with pytest.raises(ValidationError, match="another content than the base holds"):
        case.choose(FileChoice("text", (1,)))


@pytest.mark.parametrize("patch", [b"", b"hello\n", b"diff --git a/x b/y\n"])
def test_a_patch_that_is_none_is_one_clear_error(tmp_path: Path, patch: bytes) -> None:
    with Tree(tmp_path) as base, pytest.raises((ProposalMalformed, ValidationError)):
        choose(patch, [FileChoice("x")], base)


# Any files, any choice ---------------------------------------------------------------------------


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, str]:
    """A file of lines that are all different, and a version of it with lines gone and new ones."""
    old = [f"line {n}" for n in range(draw(st.integers(0, 40)))]
    new: list[str] = []
    for number, line in enumerate([*old, ""]):
        fate = draw(st.sampled_from(["keep"] * 6 + ["drop", "change", "insert"]))
        new += {"keep": [line], "drop": [], "change": [f"new {number}"]}.get(
            fate, [f"more {number}", line]
        )
    ends = [draw(st.sampled_from(["\n", ""])) for _ in range(2)]
    return "\n".join(old) + ends[0], "\n".join(line for line in new if line) + ends[1]


@settings(max_examples=25)
@given(st.dictionaries(st.sampled_from("fgh"), texts(), min_size=1), st.data())
async def test_a_choice_and_its_complement_make_the_whole(
    tmp_path_factory: pytest.TempPathFactory, made: dict[str, tuple[str, str]], data: st.DataObject
) -> None:
    before = {name: old for name, (old, _) in made.items()}
    after = {name: new for name, (_, new) in made.items()}
    case = Case(tmp_path_factory.mktemp("choosing"), before, after)
    choice = []
    for part in parts_of(case.patch):
        numbers = [hunk.number for hunk in part.hunks]
        chosen = data.draw(st.sets(st.sampled_from(numbers))) if numbers else set()
        if chosen:
            choice.append(FileChoice(part.path, tuple(chosen)))
        elif not numbers and data.draw(st.booleans()):
            choice.append(FileChoice(part.path))
    rest = rest_of(case.patch, choice) if choice else ()
    if not choice or not rest:
        return
    half, other = case.choose(*choice), case.choose(*rest)
    assert rest_of(case.patch, rest) == tuple(sorted(_whole(choice, case), key=lambda c: c.path))
    one = await case.land(half)
    two = await case.land(other)
    assert case.before not in (one, two)
    workspace = case.folder / "both"
    shutil.copytree(case.base, workspace, symlinks=True)
    for each in (half, other):
        await anyio.run_process(["git", "apply", "-"], cwd=workspace, input=each)
    assert shot(workspace) == case.after, "one after the other they are the whole"


def _whole(choice: list[FileChoice], case: Case) -> list[FileChoice]:
    """As ``rest_of`` writes them: all hunks of a file are the file."""
    numbers = {
        part.path: tuple(hunk.number for hunk in part.hunks) for part in parts_of(case.patch)
    }
    return [
        FileChoice(each.path)
        if each.hunks is None or len(each.hunks) == len(numbers[each.path])
        else FileChoice(each.path, tuple(sorted(each.hunks)))
        for each in choice
    ]


# The record --------------------------------------------------------------------------------------


def parent(case: Case) -> tuple[ProposalRef, ProposalFolder]:
    changed = tuple(ChangedFile(part.path, part.status) for part in parts_of(case.patch))
    proposal = Proposal(
        "1", "run-1", "coder", "2026-02-20T10:00:00Z", Base(None), SandboxPaths(), changed, "note"
    )
    ref = ProposalRef(
        run_id="run-1",
        agent_id="coder",
        proposal_id="p1",
        generation=3,
        patch="proposal/changes.patch",
        changed_files=changed,
    )
    return ref, ProposalFolder(proposal, case.patch, "All of it.\n", "log")


def test_a_derived_proposal_names_its_parent_and_lives_by_itself(
    case: Case, tmp_path: Path
) -> None:
    ref, folder = parent(case)
    chosen = (FileChoice("text", (3, 1)), FileChoice("made"))
    with Tree(case.base) as base:
        derived = derive(ref, folder, chosen, base, created_at="2026-02-20T11:00:00Z")
        again = derive(ref, folder, chosen[::-1], base, created_at="2026-02-20T11:00:00Z")
    assert derived == again, "the order of a choice says nothing"
    assert derived.ref.proposal_id.startswith("p1-part-")
    assert derived.ref.generation == 3
    assert {file.path for file in derived.ref.changed_files} == {"text", "made"}
    origin = derived.folder.proposal.derived_from
    assert origin is not None
    assert origin != folder.proposal.derived_from
    assert "hunk 1, 3 of 3" in derived.folder.summary
    assert derived.folder.test_log is None, "evidence is gathered anew"
    derived.folder.save(tmp_path / "shelf")
    loaded = load(tmp_path / "shelf")
    assert loaded.proposal == derived.folder.proposal
    assert b'"proposalId": "p1"' in (tmp_path / "shelf" / "proposal.json").read_bytes()


def test_another_choice_is_another_proposal() -> None:
    one = derived_id("p1", [FileChoice("a", (1,))])
    assert one != derived_id("p1", [FileChoice("a", (2,))])
    assert one != derived_id("p2", [FileChoice("a", (1,))])
    assert one == derived_id("p1", [FileChoice("a", (1,))])


def test_choosing_everything_is_no_choice(case: Case) -> None:
    ref, folder = parent(case)
    every = [FileChoice(part.path) for part in parts_of(case.patch)]
    with Tree(case.base) as base, pytest.raises(ValidationError, match="Everything was chosen"):
        derive(ref, folder, every, base, created_at="2026-02-20T11:00:00Z")


@pytest.mark.req("S4")
def test_the_record_of_a_whole_proposal_stays_to_the_letter(case: Case) -> None:
    _, folder = parent(case)
    data = encode(folder.proposal)
    assert b"derivedFrom" not in data
    assert decode_proposal(data) == folder.proposal
