"""Any command line can be an agent, and whatever it does wrong has a name and leaves nothing.

That nothing is left is shown by the kernel: each process of a hostile command holds a lock on one
file, which is free only when the last of them is gone.
"""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from agentcanvas.agents.answers import JsonForm
from agentcanvas.agents.confined import tag_of
from agentcanvas.agents.runtime import Image, Outcome
from agentcanvas.agents.runtimes.command import CommandRuntime
from agentcanvas.clock import SystemClock, VirtualClock
from agentcanvas.errors import ValidationError
from agentcanvas.protocol.records import FailureClass, RawEvent, TextEvent
from agentcanvas.sandbox.confine import Confinement, View
from agentcanvas.sandbox.process_tree import marked
from tests.agents.conftest import Events, nobody_holds, turn

pytestmark = pytest.mark.anyio

CLOCK = SystemClock()
LOCKED = "exec 9> lock; flock -s 9; "


def command(
    line: str | list[str], confinement: Confinement, *, output_bytes: int = 1 << 20
) -> CommandRuntime:
    return CommandRuntime(line, confinement, CLOCK, output_bytes=output_bytes, grace_s=0.2)


def is_there(path: str) -> bool:
    return Path(path).exists()


@pytest.mark.req("S2", "D40")
async def test_the_prompt_goes_to_stdin_and_stdout_is_the_answer(
    confinement: Confinement, place: View, events: Events
) -> None:
    runtime = command("cat; echo hm >&2; echo three > made", confinement)
    result = await runtime.run(turn(prompt="one\ntwo ü", place=place), events)
    assert (result.outcome, result.text) == (Outcome.OK, "one\ntwo ü")
    assert (result.exit_code, result.left_over, result.notes) == (0, 0, ())
    assert [event.text for event in events.of(TextEvent)] == ["one", "two ü"]
    assert [event.line for event in events.of(RawEvent)] == ["hm"]
    assert (place.tree / "made").read_text() == "three\n"


@pytest.mark.parametrize("by_shell", [True, False])
async def test_placeholders_are_filled_and_nothing_in_them_is_understood_by_a_shell(
    confinement: Confinement, place: View, events: Events, by_shell: bool
) -> None:
    hostile = 'it\'s "$(touch made)" `x` ; {workdir}\n\\'
    line: str | list[str] = ["printf", "%s|%s", "{prompt}", "in {workdir}"]
    if by_shell:
        line = "printf '%s|%s' {prompt} in\\ {workdir}"
    result = await command(line, confinement).run(turn(prompt=hostile, place=place), events)
    inside = confinement.places(place).tree
    assert result.text == f"{hostile}|in {inside}"
    assert not (place.tree / "made").exists()


async def test_a_prompt_file_can_be_read_inside_and_is_gone_afterwards(
    confinement: Confinement, place: View, events: Events
) -> None:
    prompt = "x" * 200_000
    runtime = command(["wc", "-c", "{prompt_file}"], confinement)
    result = await runtime.run(turn(prompt=prompt, place=place), events)
    assert result.text.split()[0] == "200000"
    assert list(place.tmp.glob("prompt-*")) == []


async def test_braces_of_other_languages_are_left_alone(
    strongest: Confinement, place: View, events: Events
) -> None:
    runtime = command("echo a b | awk '{print}'; A=1; echo ${A}", strongest)
    assert (await runtime.run(turn(place=place), events)).text == "a b\n1"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "is empty"),
        ([], "is empty"),
        ("run {promt}", "did you mean {prompt}?"),
        (["run", "{work_dir}"], "did you mean {workdir}?"),
        (["a\0b"], "NUL"),
    ],
)
def test_a_bad_command_line_is_refused_before_it_runs(
    strongest: Confinement, line: str | list[str], words: str
) -> None:
    with pytest.raises(ValidationError, match=words.replace("?", r"\?")):
        command(line, strongest)


async def test_without_files_it_runs_in_an_empty_place_that_is_gone_afterwards(
    confinement: Confinement, events: Events
) -> None:
    runtime = command("pwd; ls -A; touch made; ls", confinement)
    result = await runtime.run(turn(), events)
    folder, made = result.text.split("\n")
    assert made == "made"
    assert not is_there(folder)


async def test_an_empty_place_is_gone_afterwards_however_deep_it_was_filled(
    strongest: Confinement, events: Events
) -> None:
    dig = "pwd; for _ in $(seq 1500); do mkdir d && cd d; done; chmod 0 ."
    result = await command(dig, strongest).run(turn(), events)
    assert result.outcome is Outcome.OK
    assert not is_there(result.text)


@pytest.mark.req("D8", "S2")
async def test_in_a_read_only_view_of_the_workspace_it_cannot_write(
    confinement: Confinement, place: View, events: Events
) -> None:
    (place.tree / "file").write_text("old")
    runtime = command("cat file; echo new > file", confinement)
    result = await runtime.run(turn(place=replace(place, writable=False)), events)
    assert result.outcome is Outcome.FAILED
    assert result.text == "old"
    assert (place.tree / "file").read_text() == "old"


async def test_variables_come_by_name_and_their_values_are_not_recorded(
    strongest: Confinement, place: View, events: Events
) -> None:
    environ = {"MY_KEY": "sk-secret-123", "OTHER": "not allowed"}
    runtime = CommandRuntime(
        "echo key=$MY_KEY other=$OTHER; echo $MY_KEY >&2", strongest, CLOCK, environ=environ
    )
    result = await runtime.run(turn(env=("MY_KEY", "ABSENT", "HOME"), place=place), events)
    assert result.text == "key=[MY_KEY] other="
    assert events.of(RawEvent)[0].line == "[MY_KEY]"
    assert result.notes == (
        "ABSENT is not set here and could not be passed on.",
        "HOME is the sandbox's own and is not passed on.",
    )


@pytest.mark.req("S2")
@pytest.mark.parametrize("plant", ["ln -s {user}/plan.md {name}", "mkdir -p {name}/x"])
async def test_what_an_agent_leaves_in_the_place_of_its_prompt_leads_nowhere(
    confinement: Confinement, place: View, events: Events, tmp_path: Path, plant: str
) -> None:
    user = tmp_path / "user"
    user.mkdir()
    (user / "plan.md").write_text("mine")
    names = await command("echo {prompt_file}", confinement).run(turn(place=place), events)
    planted = plant.format(user=user, name=names.text)
    other = turn(place=place, turn_id="i1/ask:2")
    assert (await command(planted, confinement).run(other, events)).outcome is Outcome.OK
    again = await command("cat {prompt_file}", confinement).run(turn(place=place), events)
    assert again.text == "Do it."
    assert (user / "plan.md").read_text() == "mine"
    assert [path.name for path in user.iterdir()] == ["plan.md"]
    swaps = "rm {prompt_file}; mkdir -p {prompt_file}/x"
    assert (await command(swaps, confinement).run(turn(place=place), events)).ok
    assert list(place.tmp.rglob("prompt-*")) == []


@pytest.mark.req("S2", "F5")
@pytest.mark.parametrize("plant", ["ln -s {user}/plan.md {name}", "mkdir -p {name}/x"])
async def test_what_an_agent_leaves_in_the_place_of_an_image_leads_nowhere(
    confinement: Confinement, place: View, events: Events, tmp_path: Path, plant: str
) -> None:
    user = tmp_path / "user"
    user.mkdir()
    (user / "plan.md").write_text("mine")
    (user / "one.png").write_bytes(b"picture")
    shown = turn(place=place, images=(Image(user / "one.png", "image/png"),))
    named = await command("echo {images}; rm {images}", confinement).run(shown, events)
    planted = plant.format(user=user, name=named.text)
    assert (await command(planted, confinement).run(turn(place=place), events)).ok
    again = await command("cat {images}", confinement).run(shown, events)
    assert again.text == "picture"
    assert (user / "plan.md").read_text() == "mine"


@pytest.mark.req("F5")
async def test_images_are_put_where_the_agent_can_open_them(
    confinement: Confinement, place: View, events: Events, tmp_path: Path
) -> None:
    outside = tmp_path / "a shot.png"
    outside.write_bytes(b"\x89PNG 1")
    (place.tree / "two.png").write_bytes(b"\x89PNG 2")
    images = (Image(outside, "image/png"), Image(place.tree / "two.png", "image/png"))
    by_word = command(["cat", "{images}"], confinement)
    result = await by_word.run(turn(images=images, place=place), events)
    assert result.text == "\ufffdPNG 1\ufffdPNG 2"
    by_prompt = command("sed -n 's/^- //p' | xargs -d '\\n' cat", confinement)
    result = await by_prompt.run(turn(images=images, place=place), events)
    assert result.text == "\ufffdPNG 1\ufffdPNG 2"


async def test_a_typed_answer_is_read_from_its_words(
    strongest: Confinement, place: View, events: Events
) -> None:
    form = JsonForm({"type": "object", "required": ["ok"]})
    runtime = command("echo 'Here you are:'; echo '{\"ok\": 1}'", strongest)
    result = await runtime.run(turn(form=form, place=place), events)
    assert (result.ok, result.value) == (True, {"ok": 1})


# --- what goes wrong ----------------------------------------------------------------------------


async def test_garbage_for_an_answer_is_a_breach_with_a_sentence(
    strongest: Confinement, place: View, events: Events
) -> None:
    form = JsonForm({"type": "object", "required": ["ok"]})
    runtime = command("head -c 2000 /dev/urandom", strongest)
    result = await runtime.run(turn(form=form, place=place), events)
    assert result.outcome is Outcome.OK
    assert not result.ok
    assert result.breach


async def test_output_that_is_not_utf8_is_kept_as_well_as_it_can_be(
    confinement: Confinement, place: View, events: Events
) -> None:
    result = await command("printf 'a\\377b\\n\\000c'", confinement).run(turn(place=place), events)
    assert result.text == "a\ufffdb\n\0c"


async def test_a_nonzero_exit_code_is_a_failure_with_the_last_words(
    confinement: Confinement, place: View, events: Events
) -> None:
    runtime = command("echo half; echo warm-up >&2; echo no model >&2; exit 3", confinement)
    result = await runtime.run(turn(place=place), events)
    assert (result.outcome, result.exit_code, result.text) == (Outcome.FAILED, 3, "half")
    assert result.error == "The command ended with exit code 3: no model."
    assert result.error_class is FailureClass.CRASH


async def test_dying_in_the_middle_of_a_turn_is_a_crash_that_keeps_what_was_said(
    confinement: Confinement, place: View, events: Events
) -> None:
    script = f"{LOCKED} echo begun; (setsid sleep 600 &); kill -KILL $$"
    result = await command(["sh", "-c", script], confinement).run(turn(place=place), events)
    assert result.outcome is Outcome.FAILED
    assert result.error_class is FailureClass.CRASH
    assert result.error == "'sh' was ended by SIGKILL."
    assert result.text == "begun"
    assert result.left_over == 0
    assert nobody_holds(place.tree / "lock")


@pytest.mark.req("D32")
async def test_one_that_never_answers_times_out_though_it_ignores_signals_and_leaves_daemons(
    confinement: Confinement, place: View, events: Events
) -> None:
    script = (
        f"{LOCKED} trap '' TERM; (setsid sleep 600 &); (env -i setsid sleep 600 &);"
        "while :; do echo busy; sleep 0.05; done"
    )
    asked = turn(timeout_s=0.5, silent_s=60, place=place)
    result = await command(["sh", "-c", script], confinement).run(asked, events)
    assert result.outcome is Outcome.TIMEOUT
    assert result.error == "'sh' was not done after 0.5 s and was stopped."
    assert result.text.startswith("busy")
    assert result.left_over == 0
    assert nobody_holds(place.tree / "lock")
    assert marked(tag_of(place)) == []


@pytest.mark.req("D32")
async def test_one_that_falls_silent_stalls(
    strongest: Confinement, place: View, events: Events
) -> None:
    asked = turn(timeout_s=60, silent_s=0.4, place=place)
    result = await command("echo hm; sleep 600", strongest).run(asked, events)
    assert result.outcome is Outcome.STALLED
    assert result.error == "'echo' said nothing for 0.4 s and was stopped."
    assert (result.text, result.left_over) == ("hm", 0)


async def test_a_flood_is_cut_off_and_said(
    strongest: Confinement, place: View, events: Events
) -> None:
    runtime = command("yes x | head -c 3000000", strongest, output_bytes=1000)
    result = await runtime.run(turn(place=place), events)
    assert result.outcome is Outcome.OK
    assert len(result.text) == 999
    assert sum(len(event.text) + 1 for event in events.of(TextEvent)) == 1000
    dropped = "2,999,000 in the middle were dropped"
    assert result.notes == (f"'yes' said more than 1,000 bytes; {dropped}.",)


async def test_a_flood_of_lines_is_not_a_flood_of_events(
    strongest: Confinement, place: View, events: Events
) -> None:
    runtime = command("seq 20000; seq 20000 >&2", strongest, output_bytes=1 << 23)
    result = await runtime.run(turn(place=place), events)
    assert result.text == "\n".join(map(str, range(1, 20_001)))
    assert "\n".join(event.text for event in events.of(TextEvent)) == result.text
    assert "\n".join(event.line for event in events.of(RawEvent)) == result.text
    assert len(events) < 5_000


async def test_an_image_that_is_not_there_is_named(
    strongest: Confinement, place: View, events: Events
) -> None:
    images = (Image(place.tree / "gone.png", "image/png"),)
    result = await command("cat", strongest).run(turn(images=images, place=place), events)
    assert result.error == f"There is no image {place.tree / 'gone.png'}; hand it in again."


async def test_a_missing_program_is_said_with_the_next_step(
    confinement: Confinement, place: View, events: Events
) -> None:
    result = await command(["no-such-agent", "-p"], confinement).run(turn(place=place), events)
    assert result.outcome is Outcome.FAILED
    assert result.error == (
        "There is no program 'no-such-agent' on the PATH; install it, or correct the agent's "
        "command."
    )
    assert events == []
    result = await command("no-such-agent -p", confinement).run(turn(place=place), events)
    assert result.exit_code == 127
    assert result.error_class is FailureClass.DENIED  # a second try finds it no more than the first
    assert "no-such-agent" in result.error
    assert "install the program, or correct the agent's command." in result.error


async def test_a_program_that_only_the_host_has_is_told_from_one_that_is_missing(
    strongest: Confinement, place: View, events: Events, tmp_path: Path
) -> None:
    script = tmp_path / "agent.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    result = await command(f"{script} --go", strongest).run(turn(place=place), events)
    assert result.exit_code == 127
    assert f"{script} is outside the sandbox: put it into the repository" in result.error


async def test_a_program_of_the_work_folder_is_run_or_its_fault_is_named(
    confinement: Confinement, place: View, events: Events
) -> None:
    tool = place.tree / "tool.sh"
    runtime = command(["./tool.sh"], confinement)
    assert "no program './tool.sh'" in (await runtime.run(turn(place=place), events)).error
    tool.write_text("#!/bin/sh\necho from the tree\n")
    assert "chmod +x" in (await runtime.run(turn(place=place), events)).error
    tool.chmod(stat.S_IRWXU)
    assert (await runtime.run(turn(place=place), events)).text == "from the tree"
    inside = confinement.places(place).tree / "tool.sh"
    absolute = command([str(inside)], confinement)
    assert (await absolute.run(turn(place=place), events)).text == "from the tree"


async def test_a_prompt_too_long_for_a_command_line_names_the_other_ways(
    strongest: Confinement, place: View, events: Events
) -> None:
    asked = turn(prompt="x" * 200_000, place=place)
    result = await command(["echo", "{prompt}"], strongest).run(asked, events)
    assert result.outcome is Outcome.FAILED
    assert "{prompt_file}" in result.error


async def test_a_work_folder_that_is_gone_is_named(
    strongest: Confinement, place: View, events: Events
) -> None:
    shutil.rmtree(place.tree)
    result = await command("echo hm", strongest).run(turn(place=place), events)
    assert result.outcome is Outcome.FAILED
    assert f"{place.tree} is gone" in result.error
    assert "prepare its sandbox again" in result.error


@pytest.mark.req("H10", "D18")
async def test_cancelling_leaves_nothing_behind(
    confinement: Confinement, place: View, events: Events
) -> None:
    script = f"{LOCKED} trap '' TERM; (setsid sleep 600 &); echo ready; sleep 600"
    asked = turn(place=place)

    def when_ready(event: object) -> None:
        assert not nobody_holds(place.tree / "lock"), "the trial must be able to fail"
        assert marked(tag_of(place)), "leftovers must be found by the tag"
        scope.cancel()

    with anyio.CancelScope() as scope:
        await command(["sh", "-c", script], confinement).run(asked, when_ready)
    assert scope.cancelled_caught
    assert nobody_holds(place.tree / "lock")
    assert marked(tag_of(place)) == []


@pytest.mark.req("D5")
async def test_a_virtual_clock_stands_still_while_a_process_runs(
    strongest: Confinement, place: View, events: Events, clock: VirtualClock
) -> None:
    runtime = CommandRuntime("sleep 0.2; echo done", strongest, clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.sleep, 3600)
        result = await runtime.run(turn(place=place), events)
        assert (result.text, clock.monotonic()) == ("done", 0)


async def test_the_environment_is_read_when_the_turn_begins(
    strongest: Confinement, place: View, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = command("echo $LATE_VALUE", strongest)
    monkeypatch.setenv("LATE_VALUE", "now")
    assert os.environ["LATE_VALUE"] == "now"
    result = await runtime.run(turn(env=("LATE_VALUE",), place=place), events)
    assert result.text == "now"
