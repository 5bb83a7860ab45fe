"""docs/agents.md is followed to the letter: its YAML is read, its programs are run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agentcanvas.agents.answers import JsonForm, read_answer
from agentcanvas.agents.prompt import render
from agentcanvas.agents.runtime import Outcome
from agentcanvas.agents.runtimes.command import CommandRuntime
from agentcanvas.agents.runtimes.human import HumanRuntime
from agentcanvas.agents.runtimes.python import PythonRuntime
from agentcanvas.agents.runtimes.script import ScriptRuntime, read_script
from agentcanvas.agents.runtimes.script.model import VERBS
from agentcanvas.app.clis import CLIS, Choice, adapter_of, wishes_of
from agentcanvas.app.prices import load_prices
from agentcanvas.app.ways_out import way_out
from agentcanvas.clock import SystemClock, VirtualClock
from agentcanvas.flows.document import read_document
from agentcanvas.flows.shape import made
from agentcanvas.flows.team import Agent
from agentcanvas.protocol.forms import StandardResponse
from agentcanvas.protocol.packet import Packet
from agentcanvas.protocol.records import FailureClass, TextEvent
from agentcanvas.sandbox.confine import Confinement, View
from agentcanvas.sandbox.egress.providers import PROVIDERS
from tests.agents.conftest import Events, turn

pytestmark = pytest.mark.anyio

PAGE = (Path(__file__).parents[2] / "docs/agents.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def block(language: str, words: str) -> str:
    """Give the one block of a language that holds these words."""
    (found,) = [text for name, text in BLOCKS if name == language and words in text]
    return str(found)


def member(words: str) -> Agent:
    data = read_document(block("yaml", words)).data
    (agent,) = data["agents"]
    found, problems = made(agent, Agent)
    assert found is not None, problems
    return found


def test_every_yaml_block_is_a_team_or_a_script() -> None:
    for language, text in BLOCKS:
        if language == "yaml":
            data = read_document(text).data
            assert list(data) in (["agents"], ["turns"])


@pytest.mark.req("D11")
def test_what_an_agent_reaches_is_read_as_the_page_says() -> None:
    way = way_out(member("pypi.org"))
    assert [host.name for host in way.rules.hosts] == ["pypi.org", "files.pythonhosted.org"]
    assert [model.name for model in way.rules.models] == ["anthropic"]
    assert all(f"`{key}`" in PAGE for key in PROVIDERS)


@pytest.mark.req("S2", "T2")
async def test_the_command_works_as_shown(
    strongest: Confinement, place: View, events: Events
) -> None:
    runtime = member("kind: command").runtime
    assert runtime is not None
    assert isinstance(runtime.command, tuple)
    assert runtime.timeout_ms is not None
    tool = place.tree / "tools/agent.sh"
    tool.parent.mkdir()
    tool.write_text(block("sh", "tools/agent.sh"))
    tool.chmod(0o755)
    command = CommandRuntime(runtime.command, strongest, SystemClock())
    asked = turn(
        prompt=render(Packet(task="Greet.")),
        form=StandardResponse,
        place=place,
        env=runtime.env,
        timeout_s=runtime.timeout_ms / 1000,
    )
    result = await command.run(asked, events)
    assert result.ok, result.error or result.breach
    assert result.value.intent == "Add a greeting"
    assert (place.tree / "greeting.py").read_text() == 'greeting = "hello"\n'


async def test_the_script_works_as_shown(
    strongest: Confinement, place: View, events: Events
) -> None:
    script = read_script(block("yaml", "# coder.yaml"))
    runtime = ScriptRuntime(script, VirtualClock(), strongest)
    asked = {"task_id": "T1", "place": place, "form": StandardResponse}
    first = await runtime.run(turn(**asked), events)
    assert first.ok, first.error
    assert first.value.intent == "Add a greeting"
    again = await runtime.run(turn(revision=1, **asked), events)
    assert again.ok, again.error
    assert (place.tree / "greeting.py").read_text() == "greeting = 'good morning'\n"
    plan = await runtime.run(turn(role="planner", number=1), events)
    assert plan.value["tasks"][0]["task_id"] == "T1"
    failed = await runtime.run(turn(role="planner", number=2), events)
    assert failed.error_class is FailureClass.RATE_LIMIT
    assert runtime.left_over() == ()


def test_every_step_and_every_failure_is_in_the_tables() -> None:
    steps = re.findall(r"^\| `(\w+)` \| .*$", PAGE, re.MULTILINE)
    assert set(VERBS) <= set(steps)
    assert ", ".join(FailureClass) in PAGE


async def test_the_function_works_as_shown(clock: VirtualClock, events: Events) -> None:
    namespace: dict[str, Any] = {}
    exec(block("python", "# team.py"), namespace)
    runtime = PythonRuntime(namespace["review"], clock)
    result = await runtime.run(turn(prompt="tests: passed", form=JsonForm({})), events)
    assert result.value == {"decision": "apply"}
    assert [event.text for event in events.of(TextEvent)] == ["Reading the patch."]
    described = member("kind: python").runtime
    assert described is not None
    assert described.call == "team:review"


async def test_the_person_is_asked_as_shown(clock: VirtualClock, events: Events) -> None:
    runtime = member("kind: human").runtime
    assert runtime is not None
    assert runtime.timeout_ms is not None

    async def nobody(_: object) -> Any:
        await clock.sleep(10**9)

    human = HumanRuntime("you", nobody, clock)
    result = await human.run(turn(timeout_s=runtime.timeout_ms / 1000), events)
    assert result.outcome is Outcome.TIMEOUT
    assert clock.monotonic() == 86_400


def test_the_breach_reads_as_shown() -> None:
    schema = {
        "type": "object",
        "required": ["why"],
        "properties": {"score": {"type": "integer", "maximum": 10}},
    }
    told = str(getattr(read_answer('{"score": 70}', JsonForm(schema)), "sentence", ""))
    assert told == block("text", '"score"').strip()


@pytest.mark.parametrize("cli", CLIS)
def test_the_table_of_clis_says_what_the_adapters_say(cli: str) -> None:
    facts = adapter_of(cli).facts
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{cli}` {facts.title}")]
    _, _, tried, key, resumes, mcp, _, _ = (cell.strip() for cell in row.split("|"))
    when = f"{facts.tested}, {facts.tested_on}" if facts.tested else "untried"
    assert tried.startswith(when)
    names = dict.fromkeys(f"`{provider.key_env}`" for provider in facts.providers)
    assert key == (", ".join(names) or "a login only")
    assert (resumes, mcp) == tuple(
        "yes" if known else "no" for known in (facts.resumes, facts.speaks_mcp)
    )


def test_a_coding_cli_is_asked_as_the_page_says() -> None:
    agent = member("max_turns: 40")
    choice = Choice(adapter_of("claude"))
    wishes = wishes_of(agent, choice, retries=1)
    assert (wishes.model, wishes.max_turns) == ("sonnet", 40)
    assert wishes.system == "Prefer small functions."


def test_the_prices_of_the_page_are_read(tmp_path: Path) -> None:
    (tmp_path / "agentcanvas").mkdir()
    (tmp_path / "agentcanvas" / "prices.toml").write_text(block("toml", "[models]"))
    table = load_prices({"XDG_CONFIG_HOME": str(tmp_path)})
    assert table.price_of("my-model") is not None
