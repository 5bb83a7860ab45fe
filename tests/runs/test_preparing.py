"""What a run stands on: ignored files that are brought along, and what a setup makes, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentcanvas.agents.runtime import Turn
from agentcanvas.runs import events as e
from agentcanvas.runs.engine import Engine
from agentcanvas.runs.state import RunStatus
from tests.chaos.driving import flow, judged, order, payloads, rests, so_far, tree_of
from tests.runs.workspaces import engine_on, repository
from tests.sandbox.upstream import running

pytestmark = [pytest.mark.anyio, pytest.mark.req("S1", "S3")]

USES_BOTH = {"name": "generated", "command": "grep -q made gen/out.txt && test -f local.cfg"}


def coder(turn: Turn) -> str:
    """Says what it finds of the ignored files."""
    tree = tree_of(turn)
    found = [name for name in ("gen/out.txt", "local.cfg", ".env") if (tree / name).exists()]
    (tree / "found.txt").write_text("\n".join(found))
    return "I looked."


CODER = {"coder": coder}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = repository(tmp_path / "repo", {".gitignore": "gen/\nlocal.cfg\n.env\n", "a.txt": "a\n"})
    (root / "local.cfg").write_text("mine\n")
    (root / ".env").write_text("SECRET=1\n")
    return root


def with_ground(**more: Any) -> str:
    data = msgspec.json.decode(flow(checks=[USES_BOTH]))
    return msgspec.json.encode({**data, **more}).decode()


async def played(engine: Engine, text: str, **more: Any) -> str:
    run_id = await engine.start(order(text, **more))
    await rests(engine, run_id)
    return run_id


async def test_what_a_setup_made_and_what_was_brought_is_there_for_agents_and_checks(
    root: Path,
) -> None:
    setup = "mkdir gen && echo made > gen/out.txt && cat a.txt"
    async with engine_on(root, functions=CODER) as engine:
        run_id = await played(engine, with_ground(setup=setup, bring=["*.cfg"]))
        (done,) = payloads(await so_far(engine, run_id), e.SetupDone)
        assert (root / done.log).read_text() == "a"
        (checked,) = payloads(await so_far(engine, run_id), e.ChecksRun)
        assert checked.sentence == "generated: green → green"
        await judged(engine, run_id, decision="apply")
        assert (await engine.state(run_id)).status is RunStatus.DONE
    assert (root / "found.txt").read_text().split() == ["gen/out.txt", "local.cfg"]
    assert not (root / "gen").exists()


@pytest.mark.req("D3", "D4")
async def test_a_setup_runs_once_over_many_resumes(root: Path) -> None:
    setup = "mkdir gen; echo made > gen/out.txt; date +%N >> gen/out.txt"
    async with engine_on(root, functions=CODER) as engine:
        run_id = await played(engine, with_ground(setup=setup, bring=["local.cfg"]))
        made = (root / ".agentcanvas/generations" / run_id / "setup/made/gen/out.txt").read_text()
    async with engine_on(root, functions=CODER) as engine:
        await judged(engine, run_id, decision="revise", reason="again")
        assert len(payloads(await so_far(engine, run_id), e.SetupDone)) == 1
        now = (root / ".agentcanvas/generations" / run_id / "setup/made/gen/out.txt").read_text()
        assert now == made
        checks = payloads(await so_far(engine, run_id), e.ChecksRun)
        assert [each.status for each in checks] == ["passed", "passed"]


async def test_a_setup_that_fails_ends_the_run_with_its_last_words(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await played(engine, with_ground(setup="echo no such package; exit 7"))
        state = await engine.state(run_id)
        assert state.status is RunStatus.STOPPED
        assert "failed: exit code 7" in state.reason
        assert "no such package" in state.reason
        assert state.tasks == {}


@pytest.mark.req("D11")
async def test_a_setup_reaches_the_hosts_it_names_and_is_told_of_others(root: Path) -> None:
    script = (
        "import sys, urllib.request\n"
        "for url in sys.argv[1:]:\n"
        "    try:\n"
        "        print(urllib.request.urlopen(url).status)\n"
        "    except Exception as error:\n"
        "        print(type(error).__name__)\n"
    )
    (root / "fetch.py").write_text(script)
    async with running() as upstream:
        # By name: what a program is told not to send through a proxy it would not reach at all.
        named = f"http://packages.localhost:{upstream.port}/"
        setup = {
            "command": f"python3 fetch.py {named} http://other.example:80/",
            "network": {"hosts": [f"packages.localhost:{upstream.port}@127.0.0.0/8,::1/128"]},
        }
        async with engine_on(root, functions=CODER) as engine:
            run_id = await played(engine, with_ground(setup=setup))
            (done,) = payloads(await so_far(engine, run_id), e.SetupDone)
    said = (root / done.log).read_text().split()
    assert said[1] == "HTTPError"
    assert "other.example:80" in done.notes[0]
    assert "setup.network" in done.notes[0]


async def test_a_plan_alone_needs_no_setup(root: Path) -> None:
    async with engine_on(root, functions=CODER) as engine:
        run_id = await played(engine, with_ground(setup="exit 7"), plan_only=True)
        assert payloads(await so_far(engine, run_id), e.SetupDone) == []
        assert "failed" not in (await engine.state(run_id)).reason
