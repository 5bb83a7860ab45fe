"""The demo in the terminal: the run as it goes, its report, what is true of it, and the page."""

from __future__ import annotations

import shutil
import signal
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from agentcanvas.app.demo import keep_record, make_folder, order_for
from agentcanvas.app.demo_facts import Fact, facts_of
from agentcanvas.app.office import open_premises
from agentcanvas.app.planning import WorkspacePlanner
from agentcanvas.app.server import PORT, serve_beside
from agentcanvas.cli.here import folder_here
from agentcanvas.cli.live.clean import clean
from agentcanvas.cli.live.following import ExitCode
from agentcanvas.cli.live.watching import Manner, Watching
from agentcanvas.cli.live.words import quoted
from agentcanvas.cli.offices import complain
from agentcanvas.runs.report import markdown

_CLOSER = ("git status", "agentcanvas show", "agentcanvas transcript coder_a", "agentcanvas undo")


async def show(folder: Path, *, force: bool, leave: bool, in_browser: bool) -> int:
    """Make the folder, run the team in it, report, check, and serve; gives the exit code."""
    root = await anyio.to_thread.run_sync(lambda: make_folder(folder_here() / folder, force=force))
    order = order_for(root)
    print(f"{clean(str(root))} is a small library; four of its five tests fail.")
    print(f"The request: {order.request}\n", flush=True)
    # For a moment only, any port does; a page that stays is where it always is.
    port = 0 if leave else PORT
    async with (
        open_premises(root) as (engine, hub),
        serve_beside(
            engine,
            hub.store,
            root,
            port=port,
            hub=hub,
            planner=WorkspacePlanner(engine, root),
        ) as info,
    ):
        if not leave:
            await _open(info.link, in_browser=in_browser)
        run_id = await engine.start(order)
        ended = await Watching(engine, run_id, root, Manner(no_input=True)).until_it_rests()
        recorded = [entry async for entry in engine.events(run_id, follow=False)]
        landed = (await engine.state(run_id)).landed
        await anyio.to_thread.run_sync(keep_record, root, run_id, landed)
        if ended == ExitCode.INTERRUPTED:
            return ended
        print(f"\n{clean(markdown(recorded))}")
        code = _say(await facts_of(recorded, root, info), folder)
        if not leave:
            await _serve_on(info.link)
        return code


async def _open(link: str, *, in_browser: bool) -> None:
    print(f"See it in your browser: {link}\n", flush=True)
    if in_browser:
        await anyio.to_thread.run_sync(webbrowser.open, link)


def _say(facts: Sequence[Fact], folder: Path) -> ExitCode:
    """What is true, a line each; the commands to look closer, or what is not."""
    for fact in facts:
        print(f"{'✓' if fact.holds else '✗'} {clean(fact.sentence)}")
    wrong = [f"{fact.sentence}? No: {fact.problem}" for fact in facts if not fact.holds]
    if wrong:
        print(flush=True)
        complain("The demo did not go as it must.\n" + "\n".join(f"- {each}" for each in wrong))
        return ExitCode.ERROR
    first, *others = [*_on_the_path(), f"cd {quoted(str(folder))}", *_CLOSER]
    print(f"\nLook closer:  {first}")
    for command in others:
        print(f"              {command}")
    return ExitCode.DONE


def _on_the_path() -> list[str]:
    """What makes ``agentcanvas`` a command here; nothing where it is one, or it is not known."""
    activate = Path(sys.executable).with_name("activate")
    if shutil.which("agentcanvas") or not activate.exists():
        return []
    here = folder_here()
    shown = activate.relative_to(here) if activate.is_relative_to(here) else activate
    return [f". {quoted(str(shown))}"]


async def _serve_on(link: str) -> None:
    print(f"\nThe page is at {link}\nCtrl-C ends it.", flush=True)
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as told_to_end:
        await anext(aiter(told_to_end))
