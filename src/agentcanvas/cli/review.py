"""``agentcanvas review``: look at what waits for you, and decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from msgspec import UNSET, Struct, to_builtins

from agentcanvas.cli.here import root_here
from agentcanvas.cli.live.answering import answer_from
from agentcanvas.cli.live.clean import one_line
from agentcanvas.cli.live.diff import on_console
from agentcanvas.cli.live.following import ExitCode
from agentcanvas.cli.live.jsonl import one_json
from agentcanvas.cli.live.objections import conflict_sentence, red_checks, red_sentence
from agentcanvas.cli.live.parts import choice_of, standing_lines
from agentcanvas.cli.live.remarking import placed, remark_in
from agentcanvas.cli.live.terminal import Terminal, console_here
from agentcanvas.cli.live.view import PLAN, REVIEW
from agentcanvas.cli.live.watching import Manner, Watching
from agentcanvas.cli.live.words import (
    Bars,
    headline,
    listed_commands,
    quoted,
    review_command,
    short,
    task_of,
)
from agentcanvas.cli.offices import at_office, complain, matching, misused, the_run
from agentcanvas.errors import ValidationError
from agentcanvas.flows.problem import did_you_mean
from agentcanvas.proposals.model import Decision
from agentcanvas.proposals.remarks import Remark
from agentcanvas.protocol.person import PersonAsk, is_of_hub
from agentcanvas.runs.office import Office, RunSummary
from agentcanvas.runs.shown import Side

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

NOTHING = "Nothing waits for you."


@app.command()
def review(
    run: Annotated[
        str | None,
        typer.Argument(
            help="The run, or a part of its id; whatever waits if not given.", show_default=False
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Argument(help="The task, or plan for a plan.", show_default=False),
    ] = None,
    *,
    apply: Annotated[
        bool, typer.Option("--apply", help="Land the change, or accept the plan.")
    ] = False,
    reject: Annotated[
        str | None,
        typer.Option("--reject", metavar="REASON", help="End the task, or decline the plan."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="FILE[#HUNKS]",
            help="With --apply: land only this file, or its hunks by number (parser.py#1,3); "
            "repeatable. What is left out is not landed.",
        ),
    ] = None,
    revise: Annotated[
        str | None,
        typer.Option("--revise", metavar="INSTRUCTIONS", help="Send the change back."),
    ] = None,
    answer: Annotated[
        str | None, typer.Option("--answer", metavar="TEXT", help="Answer a question.")
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option("--reason", metavar="TEXT", help="Why it should land, if checks are red."),
    ] = None,
    comment: Annotated[
        list[str] | None,
        typer.Option(
            "--comment",
            "-c",
            metavar="FILE:LINE:TEXT",
            help="Say something about a line; with --revise or --reject, as often as you like.",
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Only list what waits.")] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one event a line; with --list, what waits."),
    ] = False,
    no_input: Annotated[
        bool, typer.Option("--no-input", help="Never ask in this terminal.")
    ] = False,
) -> None:
    """Decide about what waits for you; the run then continues here.

    Without an option each change is shown with what the checks say, and you are asked. Where
    nobody can be asked, it is printed together with the commands that decide.

    A comment names a line of the file as the change leaves it, or with a - before the number one of
    the file before the change: `--comment src/a.py:-12:why?`.

    The exit code is the run's: 0 done, 3 it waits for you again, 4 it ended without reaching its
    goal, 130 left by Ctrl-C; and 1 for an error or a change that could not be applied, 2 for wrong
    usage.
    """
    said = _Said(
        apply=apply,
        reject=reject,
        revise=revise,
        answer=answer,
        reason=reason,
        remarks=_remarks(comment or ()),
        only=tuple(only or ()),
    )
    manner = Manner(json=as_json, no_input=no_input)

    async def work(office: Office) -> int:
        waiting = await _waiting(office, run, task)
        if list_:
            if as_json:
                for ask in waiting:
                    print(one_json(ask))
            else:
                _list(waiting)
            return ExitCode.DONE
        if not waiting and not said.anything:
            print(NOTHING)
            return ExitCode.DONE
        if not said.anything and not manner.asks:
            await _print_all(office, waiting)
            return ExitCode.WAITING
        ask = await _chosen(waiting, manner)
        content = await _content(office, ask, said)
        watching = Watching(office, ask.run_id, root_here(), manner)
        await watching.following.catch_up()
        if content is UNSET:
            return await watching.until_it_rests(first=ask)
        await watching.following.answer(ask, content)
        code = await watching.until_it_rests()
        if said.apply and code is ExitCode.WAITING and await _asked_again(office, ask):
            return ExitCode.ERROR
        return code

    said.must_be_one()
    at_office(work, serve=not list_ and (said.anything or manner.asks))


class _Said(Struct, frozen=True, kw_only=True):
    """What the command line decides, if it decides anything."""

    apply: bool
    reject: str | None
    revise: str | None
    answer: str | None
    reason: str | None = None
    remarks: tuple[Remark, ...] = ()
    only: tuple[str, ...] = ()

    @property
    def anything(self) -> bool:
        return bool(self._given())

    def _given(self) -> dict[str, str]:
        texts = {"--reject": self.reject, "--revise": self.revise, "--answer": self.answer}
        given = {option: text for option, text in texts.items() if text is not None}
        return {"--apply": "", **given} if self.apply else given

    def must_be_one(self) -> None:
        given = self._given()
        if len(given) > 1:
            raise misused(f"Say one of {' and '.join(given)}, not both.")
        for option, text in given.items():
            if option != "--apply" and not text.strip():
                raise misused(f"{option} needs words, such as: {option} 'the tests are missing'")
        if self.only and not self.apply:
            raise misused("--only goes with --apply: what is left out is not landed.")
        if self.reason is not None and not self.apply:
            raise misused("--reason goes with --apply; --reject and --revise bring their own.")
        if self.remarks and self.revise is None and self.reject is None:
            raise misused("--comment goes to the worker: say --revise or --reject with it.")

    def content(self, ask: PersonAsk) -> Any:
        """The answer to an ask; UNSET when the person is to be asked."""
        if not self.anything:
            return UNSET
        if ask.scope.startswith(PLAN):
            return self._about_plan(ask)
        if self.answer is not None:
            if ask.scope.startswith(REVIEW):
                raise misused(f"{task_of(ask)} is a change: say --apply, --revise or --reject.")
            return self._answer_to(ask, self.answer)
        if not ask.scope.startswith(REVIEW):
            raise misused(f"{task_of(ask)} is a question; answer it with --answer TEXT")
        if self.apply:
            return {"decision": Decision.APPLY.value, "reason": self.reason or ""}
        if self.reject is not None:
            return {"decision": Decision.REJECT.value, "reason": self.reject}
        return {"decision": Decision.REVISE.value, "reason": self.revise}

    def _about_plan(self, ask: PersonAsk) -> Any:
        if self.only:
            raise misused("A plan is accepted as a whole; change it in an editor before.")
        if self.apply:
            return ask.default
        if self.reject is not None:
            return None
        if self.answer is None:
            raise misused("A plan is not sent back; change it: agentcanvas review, then edit")
        return self._answer_to(ask, self.answer)

    def _answer_to(self, ask: PersonAsk, text: str) -> Any:
        content, problem = answer_from(text, ask)
        if problem:
            raise misused(problem)
        return content


def _remarks(typed: Sequence[str]) -> tuple[Remark, ...]:
    try:
        return tuple(map(remark_in, typed))
    except ValidationError as error:
        raise misused(str(error)) from None


async def _content(office: Office, ask: PersonAsk, said: _Said) -> Any:
    """The whole answer; UNSET when the person is to be asked."""
    if problem := await _objection(office, ask, said):
        raise ValidationError(problem)
    content = await _with_remarks(office, ask, said.content(ask), said.remarks)
    if said.only:
        content["choose"] = await _part(office, ask, said.only)
    return content


async def _objection(office: Office, ask: PersonAsk, said: _Said) -> str:
    """Why a change cannot be applied in these words, and which do; what a part meets is not known.

    Said before the run is told: it could only ask once more.
    """
    if not said.apply or said.only or not ask.scope.startswith(REVIEW):
        return ""
    view = await office.proposal(ask.run_id, task_of(ask))
    review = review_command(ask)
    if conflict := conflict_sentence(view):
        return (
            f"Not applied: {conflict}. Take that back or set it aside and apply again, or have it "
            f'redone: {review} --revise "…"'
        )
    red = "" if (said.reason or "").strip() else red_sentence(view)
    again = f'If it should land all the same: {review} --apply --reason "…"'
    return f"Not applied: {red}. {again}" if red else ""


async def _asked_again(office: Office, ask: PersonAsk) -> bool:
    """Whether the same is waiting again with a reason why, which was just told."""
    found = await office.asks(ask.run_id)
    return any(other.scope == ask.scope and other.problem for other in found)


async def _with_remarks(
    office: Office, ask: PersonAsk, content: Any, remarks: Sequence[Remark]
) -> Any:
    """The verdict with what is said about lines, each with the line as the patch shows it."""
    if not remarks:
        return content
    if not ask.scope.startswith(REVIEW):
        raise misused(f"{task_of(ask)} is no change, so it has no lines to comment on.")
    patch = await office.patch(ask.run_id, task_of(ask))
    found = [placed(remark, patch) for remark in remarks]
    for remark in found:
        await _refuse_missing_line(office, ask, remark)
    return {**content, "comments": to_builtins(found)}


async def _refuse_missing_line(office: Office, ask: PersonAsk, remark: Remark) -> None:
    """Refuse a line that the file does not have; those of the patch are there for sure."""
    if not remark.line or remark.quote:
        return
    side = Side.BEFORE if remark.side == "old" else Side.AFTER
    data = await office.file(ask.run_id, task_of(ask), remark.path, side)
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    if remark.line > lines:
        when = "before" if side is Side.BEFORE else "after"
        raise ValidationError(
            f"{remark.path} has {lines:,} lines {when} the change, so none with the number "
            f"{remark.line}."
        )


async def _waiting(office: Office, run: str | None, task: str | None) -> list[PersonAsk]:
    """What is meant by the words: a run, one of its tasks, or a task alone."""
    everything = await office.asks()
    asks = [ask for ask in everything if not is_of_hub(ask)]
    if others := len(everything) - len(asks):
        complain(f"Agents of your own wait for consent, too ({others}): agentcanvas approvals")
    if run is None:
        return asks
    runs = await office.runs()
    if task is None and not matching(runs, run) and (found := _about(asks, run)):
        return found
    chosen = await _run_or_task(office, runs, asks, run)
    of_run = [ask for ask in asks if ask.run_id == chosen.run_id]
    if task is None:
        return of_run
    found = _about(of_run, task)
    if not found:
        nothing = "" if of_run else "nothing waits in this run"
        advice = did_you_mean(task, map(task_of, of_run), nothing)
        raise ValidationError(f"{task} does not wait for you in {chosen.run_id}; {advice}")
    return found


def _about(asks: Sequence[PersonAsk], word: str) -> list[PersonAsk]:
    return [ask for ask in asks if word in (task_of(ask), ask.ask_id)]


async def _run_or_task(
    office: Office, runs: Sequence[RunSummary], asks: Sequence[PersonAsk], word: str
) -> RunSummary:
    if not matching(runs, word) and asks:
        known = [run.run_id for run in runs] + [task_of(ask) for ask in asks]
        raise ValidationError(
            f"Neither a run nor a task that waits is called {word}; {did_you_mean(word, known)}"
        )
    return await the_run(office, word)


async def _chosen(waiting: Sequence[PersonAsk], manner: Manner) -> PersonAsk:
    """The one that is meant; with several, the person is asked."""
    if not waiting:
        raise ValidationError(f"{NOTHING} See: agentcanvas runs")
    if len(waiting) == 1:
        return waiting[0]
    if not manner.asks:
        lines = [f"agentcanvas review {quoted(a.run_id)} {quoted(task_of(a))}" for a in waiting]
        raise misused("Several things wait for you; say which:\n" + "\n".join(lines))
    return await _picked(waiting)


async def _picked(waiting: Sequence[PersonAsk]) -> PersonAsk:
    terminal = Terminal(console_here())
    _list(waiting, numbered=True)
    while True:
        typed = await terminal.line(f"Which one (1-{len(waiting)})?")
        if not typed:
            raise typer.Exit(int(ExitCode.WAITING))
        if typed.isdecimal() and 1 <= int(typed) <= len(waiting):
            return waiting[int(typed) - 1]
        found = _about(waiting, typed)
        if len(found) == 1:
            return found[0]
        terminal.say(f"{one_line(typed, 40)} is none of them.", style="red")


async def _part(office: Office, ask: PersonAsk, words: Sequence[str]) -> list[dict[str, Any]]:
    """What is to be landed, as the answer holds it."""
    view = await office.proposal(ask.run_id, task_of(ask))
    return list(to_builtins(choice_of(words, view.files)))


def _list(waiting: Sequence[PersonAsk], *, numbered: bool = False) -> None:
    if not waiting:
        print(NOTHING)
    for number, ask in enumerate(waiting, start=1):
        before = f"{number:>3}  " if numbered else ""
        print(f"{before}{short(ask.run_id)}  {short(task_of(ask))}  {headline(ask)}")


async def _print_all(office: Office, waiting: Sequence[PersonAsk]) -> None:
    """Everything one needs to decide, for a pipe or a log."""
    terminal = Terminal(console_here(), keyboard=-1)
    for ask in waiting:
        terminal.say(ask.text)
        if ask.scope.startswith(REVIEW):
            view = await office.proposal(ask.run_id, task_of(ask))
            for line in standing_lines(view):
                terminal.say(line, style="yellow")
            patch = await office.patch(ask.run_id, task_of(ask))
            terminal.show("", on_console(terminal.console, patch))
            bars = Bars(conflicts=bool(conflict_sentence(view)), red=bool(red_checks(view)))
            print(*listed_commands(ask, bars), "", sep="\n")
        else:
            print(*listed_commands(ask), "", sep="\n")
