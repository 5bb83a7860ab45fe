"""The demo's folder: made whole, made anew only while it is unchanged, and what a run must show."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from agentcanvas.agents.runtimes.script import load_script
from agentcanvas.app.demo import SOURCE, git, keep_record, make_folder, order_for
from agentcanvas.app.demo_facts import what_happened
from agentcanvas.app.office import open_engine
from agentcanvas.app.server import lock_path
from agentcanvas.app.workspace import store_path
from agentcanvas.errors import ResourceError, StoreBusy, ValidationError
from agentcanvas.flows.check import check
from agentcanvas.flows.load import find_flow, read_flow
from agentcanvas.proposals.model import Decision
from agentcanvas.runs import events as e
from agentcanvas.store.lock import OwnerLock, lock_file

Events = Sequence[e.Recorded]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path / "demo")


def failing_tests(root: Path) -> str:
    words = ["python3", "-B", "-m", "unittest"]
    done = subprocess.run(words, cwd=root, check=False, capture_output=True, text=True)
    return done.stderr.splitlines()[-1]


# Making -------------------------------------------------------------------------------------------


def test_the_folder_is_a_clean_repository_with_four_failing_tests(folder: Path) -> None:
    assert failing_tests(folder) == "FAILED (failures=4)"
    assert git(folder, "status", "--porcelain") == ""
    assert git(folder, "log", "--format=%an <%ae>") == "AgentCanvas demo <demo@example.invalid>\n"


def test_the_configuration_of_the_user_takes_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    around = tmp_path / "around"
    subprocess.run(["git", "init", "-q", str(around)], check=True)
    config = tmp_path / "config"
    config.write_text(
        "[commit]\n gpgsign = true\n[core]\n hooksPath = /nowhere\n autocrlf = true\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_DIR", str(around / ".git"))
    folder = make_folder(around / "demo")
    assert git(folder, "rev-parse", "--show-toplevel").strip() == str(folder)
    assert git(folder, "rev-list", "--count", "HEAD") == "1\n"
    assert git(around, "for-each-ref") == ""


def test_the_flow_is_sound_and_every_script_can_be_played(folder: Path) -> None:
    flow = check(read_flow(find_flow(folder, "demo"))).sound()
    scripts = [agent.runtime.script for agent in flow.agents if agent.runtime]
    assert len(scripts) == 4
    for script in filter(None, scripts):
        assert load_script(folder / script).turns
    order = order_for(folder)
    assert order.request.startswith("Make the failing tests of textkit pass")


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    assert (make_folder(tmp_path / "demo") / "textkit").is_dir()


def test_without_git_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(ResourceError, match="git was not found on the PATH"):
        make_folder(tmp_path / "demo")
    assert list(tmp_path.iterdir()) == []


def test_a_place_where_nothing_can_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResourceError, match=r"cannot be made: .*\. Name another with --folder\."):
        make_folder(tmp_path / "file" / "demo")


# Making anew --------------------------------------------------------------------------------------


def test_an_unchanged_folder_is_made_anew(folder: Path) -> None:
    before = (folder / "README.md").stat().st_ino
    make_folder(folder)
    assert (folder / "README.md").stat().st_ino != before
    assert [entry.name for entry in folder.parent.iterdir()] == ["demo"]


def commit(folder: Path) -> None:
    (folder / "README.md").touch()
    git(folder, "commit", "--quiet", "--allow-empty", "--message=mine")


CHANGES: dict[str, Callable[[Path], object]] = {
    "README.md": lambda folder: (folder / "README.md").write_text("mine\n"),
    "mine.txt": lambda folder: (folder / "mine.txt").write_text("mine\n"),
    "textkit/slugs.py": lambda folder: (folder / "textkit" / "slugs.py").unlink(),
    ".agentcanvas/MEMORY.md": lambda folder: (folder / ".agentcanvas" / "MEMORY.md").touch(),
    ".agentcanvas/flows/mine.yaml": lambda folder: (
        folder / ".agentcanvas" / "flows" / "mine.yaml"
    ).touch(),
    "link": lambda folder: (folder / "link").symlink_to(folder.parent),
    "its commits": commit,
    "its repository": lambda folder: shutil.rmtree(folder / ".git"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_folder_is_left_alone_until_it_is_forced(folder: Path, what: str) -> None:
    CHANGES[what](folder)
    with pytest.raises(ValidationError, match=rf"has changed since the demo made it \({what}\)"):
        make_folder(folder)
    make_folder(folder, force=True)
    assert not (folder / "mine.txt").exists()
    assert git(folder, "status", "--porcelain") == ""
    assert [entry.name for entry in folder.parent.iterdir()] == ["demo"]


def test_a_repository_around_does_not_speak_for_one_that_is_gone(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    folder = make_folder(tmp_path / "demo")
    shutil.rmtree(folder / ".git")
    with pytest.raises(ValidationError, match=r"\(its repository\)"):
        make_folder(folder)


def test_what_landed_may_have_been_taken_back_again(folder: Path) -> None:
    slugs, new = folder / "textkit" / "slugs.py", folder / "new.py"
    was = slugs.read_text()
    slugs.write_text("landed\n")
    new.write_text("landed\n")
    keep_record(folder, "run_1", ["textkit/slugs.py", "new.py"])
    slugs.write_text(was)
    make_folder(folder)
    assert not new.exists()


def test_what_landed_is_no_change_but_anything_after_it_is(folder: Path) -> None:
    slugs = folder / "textkit" / "slugs.py"
    slugs.write_text("landed\n")
    (folder / "mine.txt").write_text("mine, made while the run went on\n")
    keep_record(folder, "run_1", ["textkit/slugs.py"])
    with pytest.raises(ValidationError, match=r"\(mine\.txt\)"):
        make_folder(folder)
    (folder / "mine.txt").unlink()
    slugs.write_text("landed, then changed\n")
    with pytest.raises(ValidationError, match=r"\(textkit/slugs\.py\)"):
        make_folder(folder)


def test_a_folder_with_other_runs_is_left_alone(folder: Path) -> None:
    keep_record(folder, "run_1", [])
    (folder / ".agentcanvas" / "sandboxes" / "run_2").mkdir(parents=True)
    with pytest.raises(ValidationError, match="it has other runs: run_2"):
        make_folder(folder)


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
@pytest.mark.parametrize("force", [False, True])
def test_what_the_demo_did_not_make_is_never_touched(
    tmp_path: Path, kind: str, *, force: bool
) -> None:
    demo, mine = tmp_path / "demo", tmp_path / "mine"
    make_folder(mine)
    match kind:
        case "folder":
            demo.mkdir()
            (demo / "mine.txt").write_text("mine\n")
        case "file":
            demo.write_text("mine\n")
        case "link":
            demo.symlink_to(mine)
    with pytest.raises(ValidationError, match="was not made by the demo; it is left alone"):
        make_folder(demo, force=force)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["demo", "mine"]
    assert kind != "folder" or (demo / "mine.txt").read_text() == "mine\n"


@pytest.mark.req("D1")
@pytest.mark.parametrize("lock", [lock_path, lambda root: lock_file(store_path(root))])
def test_a_folder_in_use_is_left_alone(folder: Path, lock: Callable[[Path], Path]) -> None:
    with OwnerLock(lock(folder)), pytest.raises(StoreBusy):
        make_folder(folder, force=True)
    assert (folder / "textkit").is_dir()


# What a run must show -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> Events:
    """The events of one real run."""
    import anyio  # noqa: PLC0415 - a fixture of a module cannot be asynchronous here

    root = make_folder(tmp_path_factory.mktemp("demo") / "demo")

    async def run() -> Events:
        async with open_engine(root) as (engine, _):
            run_id = await engine.start(order_for(root))
            return [entry async for entry in engine.events(run_id)]

    return anyio.run(run, backend=anyio_backend)


def unmet(events: Events) -> dict[str, str]:
    return {fact.sentence: fact.problem for fact in what_happened(events) if not fact.holds}


def without(events: Events, *kinds: type, task: str = "") -> list[e.Recorded]:
    return [
        entry
        for entry in events
        if not isinstance(entry.event, kinds)
        or (task and getattr(getattr(entry.event, "payload", None), "task_id", "") != task)
    ]


@pytest.mark.req("R2", "C2", "C3", "H7", "V4")
def test_a_run_as_it_should_be_shows_every_fact(recorded: Events) -> None:
    assert unmet(recorded) == {}


def test_every_step_of_the_scripts_was_played(recorded: Events) -> None:
    begun = [x.event.payload for x in recorded if isinstance(x.event, e.TurnStarted)]
    tasks = {(turn.to, turn.task_id, turn.revision) for turn in begun if turn.task_id}
    asked = [turn for turn in begun if turn.role == "manager"]
    folder = SOURCE / "flows" / "demo"
    for name in ("coder_a", "coder_b", "reviewer"):
        script = load_script(Path(str(folder / f"{name}.yaml")))
        assert {(name, turn.task, turn.revision) for turn in script.turns} == {
            each for each in tasks if each[0] == name
        }
    planner = load_script(Path(str(folder / "planner.yaml")))
    assert [turn.turn for turn in planner.turns] == list(range(1, len(asked) + 1))


def test_nothing_that_was_applied_was_never_approved(recorded: Events) -> None:
    found = unmet(without(recorded, e.ProposalReviewed))
    assert found["One proposal was sent back once, and then applied"] == "sent back: none"
    assert found["One proposal was rejected, and nothing of it landed"] == "rejected: none"
    assert found["The planner was asked again, and its new task was applied"]
    assert found["Two proposals landed, each because the reviewer said so"].startswith(
        "approved: none"
    )


def test_a_task_that_did_not_land_is_missed(recorded: Events) -> None:
    found = unmet(without(recorded, e.ProposalLanded, task="wrap-2"))
    assert "applied: slugs" in found["The planner was asked again, and its new task was applied"]
    found = unmet(without(recorded, e.ProposalLanded, task="slugs"))
    assert found["One proposal was sent back once, and then applied"] == "slugs was not applied"


def test_a_rejected_change_that_landed_all_the_same_is_noticed(recorded: Events) -> None:
    (landed,) = [
        entry
        for entry in recorded
        if isinstance(entry.event, e.ProposalLanded) and entry.event.payload.task_id == "wrap-2"
    ]
    assert isinstance(landed.event, e.ProposalLanded)
    payload = msgspec.structs.replace(landed.event.payload, task_id="wrap")
    smuggled = msgspec.structs.replace(
        landed, event=msgspec.structs.replace(landed.event, payload=payload)
    )
    found = unmet([*recorded, smuggled])
    assert found["One proposal was rejected, and nothing of it landed"] == "wrap landed"


def test_a_verdict_of_somebody_else_is_noticed(recorded: Events) -> None:
    def by_a_person(entry: e.Recorded) -> e.Recorded:
        event = entry.event
        if isinstance(event, e.ProposalReviewed) and event.payload.decision is Decision.APPLY:
            return msgspec.structs.replace(
                entry, event=msgspec.structs.replace(event, actor="person:you")
            )
        return entry

    found = unmet([by_a_person(entry) for entry in recorded])
    assert found == {
        "Two proposals landed, each because the reviewer said so": "judged by person:you, reviewer"
    }


def test_coders_who_worked_one_after_the_other_are_noticed(recorded: Events) -> None:
    def of(entry: e.Recorded, kind: type, agent: str) -> bool:
        event = entry.event
        named = event.payload.to if isinstance(event, e.TurnStarted) else event.actor
        return isinstance(event, kind) and named == agent

    end = next(entry for entry in recorded if of(entry, e.TurnEnded, "coder_a"))
    others = [entry for entry in recorded if entry is not end]
    at = next(i for i, entry in enumerate(others) if of(entry, e.TurnStarted, "coder_b"))
    found = unmet([*others[:at], end, *others[at:]])
    assert found == {"Both coders worked at the same time": "one began when the other had ended"}


def test_checks_that_were_not_green_are_noticed(recorded: Events) -> None:
    last = [entry for entry in recorded if isinstance(entry.event, e.ChecksRun)][-1]
    assert isinstance(last.event, e.ChecksRun)
    payload = msgspec.structs.replace(last.event.payload, status="red_before", sentence="red")
    spoilt = msgspec.structs.replace(
        last, event=msgspec.structs.replace(last.event, payload=payload)
    )
    found = unmet([spoilt if entry is last else entry for entry in recorded])
    assert found == {"The checks were red at first, and green for all that landed": "wrap-2: red"}


def test_a_run_that_has_not_ended_has_not_reached_its_goal(recorded: Events) -> None:
    found = unmet(without(recorded, e.RunEnded))
    assert found == {"The run reached its goal": "it is running and waits for nobody"}
