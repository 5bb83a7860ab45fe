"""A CLI as an agent: its stream decides, and whatever it does wrong has a name.

The programs here are small scripts with the bad habits of real ones, in real confinement.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec import structs

from agentcanvas.agents.cli.kit import CliWishes
from agentcanvas.agents.cli.litter import sweep, there
from agentcanvas.agents.cli.own_login import Login
from agentcanvas.agents.cli.providers import ANTHROPIC, Provider
from agentcanvas.agents.cli.runtime import CliRuntime
from agentcanvas.agents.confined import tag_of
from agentcanvas.agents.outbound import Outbound
from agentcanvas.agents.private import write_private
from agentcanvas.agents.runtime import Image, Outcome, TurnResult
from agentcanvas.agents.way_out import WayOut
from agentcanvas.app.clis import adapter_of
from agentcanvas.clock import SystemClock
from agentcanvas.protocol.records import FailureClass, RawEvent, Usage
from agentcanvas.sandbox.confine import Confinement, Network, View
from agentcanvas.sandbox.egress.rules import Rules
from agentcanvas.sandbox.process import Limits
from agentcanvas.sandbox.process_tree import marked
from tests.agents.conftest import Events, turn
from tests.sandbox.digging import dig

pytestmark = [pytest.mark.anyio, pytest.mark.req("S2", "H8")]

CLOCK = SystemClock()


def said(text: str = "All done.", **more: Any) -> str:
    """The last line of Claude Code, as a command that prints it."""
    result = {"type": "result", "subtype": "success", "is_error": False, "result": text}
    return f"cat <<'END'\n{json.dumps(result | {'session_id': 's-1'} | more)}\nEND\n"


class Cli:
    """A script in the place of Claude Code."""

    def __init__(self, folder: Path, confinement: Confinement, place: View) -> None:
        self.script = folder / "claude-double"
        self.confinement = confinement
        self.place = place
        self.events = Events()

    async def run(
        self,
        script: str,
        *,
        wishes: CliWishes | None = None,
        limits: Limits | None = None,
        environ: dict[str, str] | None = None,
        price: Any = None,
        **more: Any,
    ) -> TurnResult:
        self.script.write_text(f"#!/bin/sh\n{script}")
        self.script.chmod(0o755)
        runtime = CliRuntime(
            adapter_of("claude"),
            self.confinement,
            CLOCK,
            wishes=structs.replace(wishes or CliWishes(), program=(str(self.script),)),
            environ=environ or {},
            limits=limits or Limits(grace_s=0.2),
            price=price,
        )
        return await runtime.run(turn(place=self.place, **more), self.events)


@pytest.fixture
def cli(tmp_path: Path, strongest: Confinement, place: View) -> Cli:
    return Cli(tmp_path, strongest, place)


# --- the stream decides -------------------------------------------------------------------------


async def test_a_turn_that_the_stream_ends_well_is_well_whatever_the_exit_code(cli: Cli) -> None:
    result = await cli.run(f"cat > prompt\n{said()}exit 3")
    assert (result.outcome, result.text, result.session_id) == (Outcome.OK, "All done.", "s-1")
    assert result.notes == ("Claude Code ended with exit code 3 after its answer.",)
    assert (cli.place.tree / "prompt").read_text() == "Do it."


async def test_exit_code_0_without_an_answer_is_a_failure(cli: Cli) -> None:
    result = await cli.run("echo hm; exit 0")
    assert (result.outcome, result.error_class) == (Outcome.FAILED, FailureClass.CRASH)
    assert result.error == "Claude Code ended without an answer."


@pytest.mark.parametrize(
    ("words", "failure"),
    [
        ("API Error: 401 invalid api key", FailureClass.AUTH),
        ("Rate limit reached. Please try again in 20s", FailureClass.RATE_LIMIT),
        ("You exceeded your current quota, check your billing", FailureClass.QUOTA),
        ("model: claude-9 not_found_error: model not found", FailureClass.MODEL_NOT_FOUND),
        ("API Error: 529 Overloaded", FailureClass.SERVER),
        ("connect ECONNREFUSED 127.0.0.1:1", FailureClass.NETWORK),
    ],
)
async def test_a_failure_has_the_class_of_its_words(
    cli: Cli, words: str, failure: FailureClass
) -> None:
    result = await cli.run(said(words, is_error=True))
    assert (result.outcome, result.error_class) == (Outcome.FAILED, failure)
    assert result.error == f"Claude Code: {words}."
    assert (result.retry_at_ms is not None) == (failure is FailureClass.RATE_LIMIT)


async def test_what_it_refused_itself_is_told(cli: Cli) -> None:
    denials = [{"tool_name": "Bash"}, {"tool_name": "Bash"}]
    result = await cli.run(said(permission_denials=denials))
    assert result.notes == ("Claude Code refused itself Bash.",)


async def test_the_command_line_is_on_record_and_the_key_is_not(cli: Cli) -> None:
    provider = Provider(ANTHROPIC.api, structs.replace(ANTHROPIC.endpoint, key_from="MY_KEY"))
    result = await cli.run(
        f'echo "$ANTHROPIC_API_KEY" >&2; {said()}',
        wishes=CliWishes(provider=provider, model="sonnet"),
        environ={"MY_KEY": "sk-secret-1234"},
    )
    assert result.ok
    first, second = [event.line for event in cli.events.of(RawEvent)][:2]
    assert first.startswith("$ claude -p --output-format stream-json --verbose")
    assert "--dangerously-skip-permissions --model sonnet" in first
    assert second == "[MY_KEY]"


async def test_without_its_key_it_is_not_even_started(cli: Cli) -> None:
    result = await cli.run("touch started", wishes=CliWishes(provider=ANTHROPIC))
    assert result.error_class is FailureClass.AUTH
    assert result.error.startswith("ANTHROPIC_API_KEY is not set, and Claude Code needs it")
    assert not (cli.place.tree / "started").exists()


async def test_behind_the_door_it_gets_a_token_and_the_address_of_the_proxy(cli: Cli) -> None:
    cli.script.write_text(
        f'#!/bin/sh\necho "$ANTHROPIC_BASE_URL $ANTHROPIC_API_KEY" > seen\n{said()}'
    )
    cli.script.chmod(0o755)
    runtime = CliRuntime(
        adapter_of("claude"),
        cli.confinement,
        CLOCK,
        wishes=CliWishes(program=(str(cli.script),), provider=ANTHROPIC),
        environ={"ANTHROPIC_API_KEY": "sk-real-0123456789"},
    )
    way = WayOut(Network.MODEL, Rules(models=(ANTHROPIC.endpoint,)))
    assert (await Outbound(runtime, way).run(turn(place=cli.place), cli.events)).ok
    seen = (cli.place.tree / "seen").read_text()
    assert "/model/anthropic " in seen
    assert "sk-real" not in seen


async def test_tokens_are_priced_by_estimate_where_the_cli_names_no_price(cli: Cli) -> None:
    prices: list[Usage] = []

    def price(usage: Usage) -> float:
        prices.append(usage)
        return 0.5

    usage = {"input_tokens": 10, "output_tokens": 5}
    result = await cli.run(said(usage=usage), price=price, wishes=CliWishes(model="m"))
    assert result.usage.cost == 0.5
    assert prices[0].model == "m"
    result = await cli.run(said(usage=usage, total_cost_usd=0.25), price=price)
    assert result.usage.cost == 0.25


async def test_a_session_that_it_no_longer_knows_is_begun_anew(cli: Cli) -> None:
    lost = said("No conversation found with session ID: s-0", is_error=True)
    script = f'case "$*" in *--resume*)\n{lost}exit 1;; esac\n{said()}'
    result = await cli.run(script, session_id="s-0")
    assert (result.outcome, result.text) == (Outcome.OK, "All done.")
    assert result.notes[-1].startswith("Claude Code no longer knows its session")


async def test_images_are_handed_in_by_their_names(cli: Cli, tmp_path: Path) -> None:
    picture = tmp_path / "shot.png"
    picture.write_bytes(b"png")
    images = (Image(path=picture, media="image/png"),)
    script = f'cat "$(grep -o "/.*shot.png")" > seen; {said()}'
    assert (await cli.run(script, images=images)).ok
    assert (cli.place.tree / "seen").read_bytes() == b"png"


# --- bad habits ---------------------------------------------------------------------------------


async def test_a_banner_before_the_stream_is_kept_and_counted(cli: Cli) -> None:
    result = await cli.run(f"echo '*** NEWS ***'; echo 'Update!'; {said()}")
    assert result.outcome is Outcome.OK
    assert result.notes == (
        "2 lines were not understood of Claude Code; the transcript has all of it.",
    )
    assert [event.line for event in cli.events.of(RawEvent)][1:] == ["*** NEWS ***", "Update!"]


async def test_one_that_asks_a_question_on_a_terminal_finds_none(cli: Cli) -> None:
    result = await cli.run("cat > /dev/null; read -r answer < /dev/tty || exit 7")
    assert (result.outcome, result.error_class) == (Outcome.FAILED, FailureClass.CRASH)
    assert result.exit_code == 7


async def test_a_number_in_a_path_is_no_status(cli: Cli) -> None:
    result = await cli.run("cat > /dev/null; echo 'cannot open /tmp/run-503/a.py:429' >&2; exit 7")
    assert result.error_class is FailureClass.CRASH


async def test_one_that_waits_for_ever_is_stalled(cli: Cli) -> None:
    result = await cli.run("echo 'Continue? [y/N]'; sleep 600", silent_s=0.3)
    assert (result.outcome, result.error_class) == (Outcome.STALLED, FailureClass.STALLED)
    assert result.left_over == 0


async def test_one_that_takes_too_long_is_stopped(cli: Cli) -> None:
    script = "while :; do echo tick; sleep 0.05; done"
    result = await cli.run(script, timeout_s=0.5)
    assert (result.outcome, result.error_class) == (Outcome.TIMEOUT, FailureClass.TIMEOUT)


async def test_a_daemon_does_not_outlive_the_turn(cli: Cli) -> None:
    result = await cli.run(f"(setsid sleep 600 >/dev/null 2>&1 &)\n{said()}")
    assert (result.outcome, result.left_over) == (Outcome.OK, 0)
    assert marked(tag_of(cli.place)) == []


async def test_a_cancelled_turn_leaves_nothing_even_where_the_tag_is_dropped(cli: Cli) -> None:
    script = "trap '' TERM INT\n(env -i setsid sleep 600 &)\n(sleep 600 &)\necho up; sleep 600"
    up = anyio.Event()

    class Watching(Events):
        def __call__(self, event: Any) -> None:
            super().__call__(event)
            if isinstance(event, RawEvent) and event.line == "up":
                up.set()

    cli.events = Watching()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cli.run, script)
        await up.wait()
        assert marked(tag_of(cli.place)), "the trial must be able to fail"
        tasks.cancel_scope.cancel()
    assert marked(tag_of(cli.place)) == []


async def test_one_that_fills_its_folders_is_stopped(cli: Cli) -> None:
    limits = Limits(growth_bytes=2_000_000, poll_s=0.05, grace_s=0.2)
    script = 'while :; do head -c 500000 /dev/zero >> "$TMPDIR/full"; sleep 0.02; done'
    result = await cli.run(script, limits=limits)
    assert (result.outcome, result.error_class) == (Outcome.FAILED, FailureClass.CRASH)
    assert "was stopped" in result.error


@pytest.mark.parametrize("signal", ["SEGV", "KILL"])
async def test_one_that_dies_by_a_signal_has_crashed(cli: Cli, signal: str) -> None:
    result = await cli.run(f"echo begun; kill -{signal} $$")
    assert (result.outcome, result.error_class) == (Outcome.FAILED, FailureClass.CRASH)
    assert f"was ended by SIG{signal}" in result.error


# --- its own login ------------------------------------------------------------------------------


@pytest.mark.req("D12")
async def test_a_login_that_an_agent_puts_in_the_place_of_yours_is_said_and_left(
    cli: Cli, tmp_path: Path
) -> None:
    own = Login(tmp_path / "claude", (".claude/.credentials.json",))
    kept = own.home / own.credentials[0]
    kept.parent.mkdir(parents=True)
    kept.write_text('{"account": "ann", "refreshToken": "r1"}')
    lent = f'"$HOME/{own.credentials[0]}"'
    replaces = f"""echo '{{"account": "eve", "refreshToken": "e1"}}' > {lent}; {said()}"""
    result = await cli.run(f"cat > prompt; {replaces}", wishes=CliWishes(login=own))
    assert result.ok
    (note,) = result.notes
    assert "was not taken back: it is of another account" in note
    assert f"login: {note}" in [event.line for event in cli.events.of(RawEvent)]
    assert kept.read_text() == '{"account": "ann", "refreshToken": "r1"}'
    assert not (cli.place.home / own.credentials[0]).exists()


# --- its private configuration ------------------------------------------------------------------


def test_configuration_is_written_for_nobody_else_and_through_no_link(tmp_path: Path) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    home.mkdir()
    outside.mkdir()
    (outside / "file").write_text("mine")
    (home / ".gemini").symlink_to(outside)
    (home / "settings").symlink_to(outside / "file")
    (home / "folder").mkdir()
    (home / "folder" / "x").write_text("x")
    dig(home / "folder", 1500)
    write_private(home, {".gemini/settings.json": "{}", "settings": "new", "folder": "file now"})
    assert (outside / "file").read_text() == "mine"
    assert sorted(path.name for path in outside.iterdir()) == ["file"]
    assert (home / ".gemini" / "settings.json").read_text() == "{}"
    assert (home / "folder").read_text() == "file now"
    assert (home / "settings").stat().st_mode & 0o777 == 0o600


def test_litter_goes_however_deep_it_is_and_what_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    before = there(tmp_path, ("mine", ".cache"))
    (tmp_path / ".cache").mkdir()
    dig(tmp_path / ".cache", 1500)
    sweep(tmp_path, ("mine", ".cache", "absent"), before)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
