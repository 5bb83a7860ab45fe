"""Where links lead: no change makes one lead out, neither its own nor one that was there."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentcanvas.errors import ApplyConflict, UnsafePatch
from agentcanvas.proposals.apply import Landing
from agentcanvas.proposals.policy import BreachKind
from agentcanvas.proposals.radar import Fitness, Radar, Waiting
from tests.proposals.workspaces import Files, Link, diff, scene, shot, write_files

pytestmark = [pytest.mark.anyio, pytest.mark.req("S5", "S6")]


async def refused(folder: Path, before: Files, after: Files) -> dict[str, tuple[BreachKind, str]]:
    """The breaches by path; nothing lands."""
    ready = scene(folder, before, after)
    there = shot(ready.workspace)
    landing = Landing(ready.workspace)
    found = (await landing.check(ready.patch, ready.base)).breaches
    with pytest.raises(UnsafePatch):
        await landing.apply("p1", ready.patch, ready.base)
    assert shot(ready.workspace) == there
    return {breach.path: (breach.kind, breach.detail) for breach in found}


@pytest.mark.parametrize("target", ["k/../../outside", "k/..", "../a/k/../b", "./k/./../b"])
async def test_a_new_link_climbs_at_its_beginning_only(tmp_path: Path, target: str) -> None:
    """What it climbs out of may become a link in the next change."""
    before: Files = {"a/f": "f\n"}
    told = await refused(tmp_path, before, {**before, "a/l": Link(target)})
    kind, detail = told["a/l"]
    assert kind is BreachKind.LINK_LEAVES
    assert detail == (
        f"is a link to {target}, which climbs after a name, so where it leads can change; "
        "climb at the beginning only"
    )


@pytest.mark.parametrize("target", ["../b", "../../x", "./../b", "k/b", "../a/k/b", "f", "."])
async def test_a_link_that_climbs_first_lands(tmp_path: Path, target: str) -> None:
    before: Files = {"a/b/f": "f\n"}
    after: Files = {**before, "a/b/l": Link(target)}
    ready = scene(tmp_path, before, after)
    await Landing(ready.workspace).apply("p1", ready.patch, ready.base)
    assert shot(ready.workspace) == shot(write_files(tmp_path / "expected", after))


LED_OUT: dict[str, tuple[Files, Files, str, str]] = {
    "a folder that becomes a link": (
        {"docs/v1/x": "x\n", "docs/l": Link("v1/../../x"), "f": "f\n"},
        {"docs/v1": Link(".."), "docs/l": Link("v1/../../x"), "f": "f\n"},
        "docs/v1",
        "would change where docs/l leads, which is a link to v1/../../x, which leaves the "
        "workspace; let docs/l lead elsewhere first",
    ),
    "a link that stops being one": (
        {"a/b/c/f": "f\n", "d/k": Link("../a/b/c"), "d/l": Link("k/../../../a")},
        {"a/b/c/f": "f\n", "d/k": "a file\n", "d/l": Link("k/../../../a")},
        "d/k",
        "would change where d/l leads, which is a link to k/../../../a, which leaves the "
        "workspace; let d/l lead elsewhere first",
    ),
    "a link that opens the way to one of the user's": (
        {"out": Link("/etc"), "l": Link("d/out/passwd"), "f": "f\n"},
        {"out": Link("/etc"), "l": Link("d/out/passwd"), "f": "f\n", "d": Link(".")},
        "d",
        "would change where l leads, which is a link to d/out/passwd, which leaves the "
        "workspace; let l lead elsewhere first",
    ),
    "a link that closes a circle": (
        {"one": Link("two/x"), "f": "f\n"},
        {"one": Link("two/x"), "f": "f\n", "two": Link("one")},
        "two",
        "is a link to one, which never ends",
    ),
}


@pytest.mark.parametrize("case", LED_OUT)
async def test_a_link_that_was_there_is_judged_again(tmp_path: Path, case: str) -> None:
    before, after, path, detail = LED_OUT[case]
    told = await refused(tmp_path, before, after)
    assert told == {path: (BreachKind.LINK_LEAVES, detail)}


async def test_two_changes_that_are_harmless_alone_do_not_lead_out_together(
    tmp_path: Path,
) -> None:
    """The user's own link leads out; no proposal may reach it, in however many steps."""
    before: Files = {"out": Link("/etc"), "f": "f\n"}
    one = diff(tmp_path / "one", before, {**before, "l": Link("d/out/passwd")})
    two = diff(tmp_path / "two", before, {**before, "d": Link(".")})
    workspace = write_files(tmp_path / "workspace", before)
    base = write_files(tmp_path / "base", before)
    radar, landing = Radar(workspace), Landing(workspace)
    radar.watch(Waiting("p2", two, base, generation=1))
    assert [look.fitness for look in await radar.recheck()] == [Fitness.CLEAN]
    await landing.apply("p1", one, base)
    with pytest.raises(UnsafePatch, match="d: would change where l leads"):
        await landing.apply("p2", two, base)
    (look,) = await radar.recheck(changed=["l"])
    assert look.fitness is Fitness.CONFLICTS
    assert look.reason.startswith("d: would change where l leads")


async def test_taking_back_does_not_lead_out_what_landed_since(tmp_path: Path) -> None:
    before: Files = {"out": Link("/etc"), "f": "f\n"}
    without: Files = {"f": "f\n"}
    workspace = write_files(tmp_path / "workspace", before)
    landing = Landing(workspace)
    gone = diff(tmp_path / "one", before, without)
    await landing.apply("p1", gone, write_files(tmp_path / "base", before))
    made = diff(tmp_path / "two", without, {**without, "l": Link("out/passwd")})
    await landing.apply("p2", made, write_files(tmp_path / "later", without))
    there = shot(workspace)
    with pytest.raises(ApplyConflict, match="Nothing was taken back: out would change where l"):
        await landing.undo("p1")
    assert shot(workspace) == there
    await landing.undo("p2")
    await landing.undo("p1")
    assert shot(workspace) == shot(tmp_path / "base")


async def test_links_of_the_user_that_lead_out_already_hinder_nobody(tmp_path: Path) -> None:
    before: Files = {
        "out": Link("/etc"),
        "up": Link("../elsewhere"),
        "odd/l": Link("k/../../../x"),
        "f": "f\n",
        "old": Link("f"),
    }
    after: Files = {**before, "new": Link("f"), "old": Link("odd")}
    ready = scene(tmp_path, before, after)
    await Landing(ready.workspace).apply("p1", ready.patch, ready.base)
    assert shot(ready.workspace) == shot(write_files(tmp_path / "expected", after))


PARTS = st.lists(st.sampled_from(["..", "a", "k", "."]), min_size=1, max_size=4)
PLACES = st.sampled_from(["a/l", "a/k", "k", "a/b/k"])


@settings(max_examples=60)
@example([("a/l", "k/../../x"), ("a/k", "..")])
@given(st.lists(st.tuples(PLACES, PARTS.map("/".join)), min_size=1, max_size=4))
async def test_however_many_links_land_one_after_another_none_leads_out(
    tmp_path_factory: pytest.TempPathFactory, links: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("links")
    now: Files = {"a/f": "f\n", "a/b/f": "f\n"}
    workspace = write_files(folder / "workspace", now)
    for number, (place, target) in enumerate(links):
        later = {**now, place: Link(target)}
        base = write_files(folder / f"base{number}", now)
        if patch := diff(folder / "d", now, later):
            with suppress(UnsafePatch):
                await Landing(workspace).apply(f"p{number}", patch, base)
                now = later
    assert all(
        _end_of(workspace / path).is_relative_to(workspace)
        for path, what in now.items()
        if isinstance(what, Link)
    )


def _end_of(link: Path) -> Path:
    return Path(os.path.realpath(link))  # a circle ends where it begins; Path.resolve raises
