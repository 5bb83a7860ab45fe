"""Answering what waits for a person, right in the terminal (D24).

Shows what is to be decided and puts the answer into the inbox. How a question reaches a person, and
what follows from the answer, is the engine's.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from msgspec import UNSET, to_builtins
from rich.panel import Panel
from rich.text import Text

from agentcanvas.cli.live.clean import clean, lines_of, one_line
from agentcanvas.cli.live.diff import counted, on_console
from agentcanvas.cli.live.objections import conflict_sentence, red_checks
from agentcanvas.cli.live.parts import choice_of, parts_table, standing_lines
from agentcanvas.cli.live.planning import as_yaml, edited, plan_in, plan_table
from agentcanvas.cli.live.remarking import FORM, placed, remark_in
from agentcanvas.cli.live.said import lines_said
from agentcanvas.cli.live.terminal import Terminal
from agentcanvas.cli.live.view import PLAN, REVIEW, RunView
from agentcanvas.cli.live.words import evidence_style, task_of
from agentcanvas.errors import AgentCanvasError, ValidationError
from agentcanvas.flows.document import read_document
from agentcanvas.proposals.model import Decision
from agentcanvas.proposals.remarks import Remark
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.runs.office import Office
from agentcanvas.runs.shown import ShownProposal

Choices = dict[str, str]
"""What a person can choose: the key, and the word that says the same."""

REVIEW_CHOICES: Choices = {
    "a": "apply",
    "p": "part",
    "r": "revise",
    "x": "reject",
    "n": "note",
    "d": "diff",
    "t": "transcript",
    "s": "skip",
}
PLAN_CHOICES: Choices = {"a": "accept", "e": "edit", "c": "cancel", "s": "skip"}
_NEEDS_REASON = {
    Decision.REVISE: "What is to be done differently?",
    Decision.REJECT: "Why is it rejected?",
}


class Reply(StrEnum):
    """What a person did with an ask."""

    ANSWERED = "answered"
    LEFT = "left for later"


class Answering:
    """One person at one terminal."""

    def __init__(self, office: Office, terminal: Terminal) -> None:
        self._office = office
        self.terminal = terminal

    async def attend(self, ask: PersonAsk, view: RunView) -> Reply:
        """Put one ask to the person; an error of ours is said, and the ask is left."""
        self.terminal.forget_what_was_typed()
        try:
            if ask.scope.startswith(REVIEW):
                return await self._review(ask, view)
            self._say_why_again(ask)
            if ask.scope.startswith(PLAN):
                return await self._plan(ask, view)
            return await self._question(ask, view)
        except AgentCanvasError as error:
            self.terminal.say(str(error), style="red")
            return Reply.LEFT

    def _say_why_again(self, ask: PersonAsk) -> None:
        if ask.problem:
            self.terminal.say(f"Asked again: {ask.problem}", style="red")

    # A proposed change --------------------------------------------------------------------------

    async def _review(self, ask: PersonAsk, view: RunView) -> Reply:
        task_id = task_of(ask)
        patch = await self._office.patch(ask.run_id, task_id)
        shown = await self._office.proposal(ask.run_id, task_id)
        self.terminal.show(_review_card(ask, view, patch, standing_lines(shown)))
        if not ask.problem:  # who is asked again has seen it, and should see why it is
            await self.terminal.page(on_console(self.terminal.console, patch))
        self._say_why_again(ask)
        remarks: list[Remark] = []
        while True:
            match await self._choice(REVIEW_CHOICES):
                case "apply" | "part" | "revise" | "reject" as chosen:
                    verdict = await self._verdict(chosen, ask, shown, remarks)
                    if verdict is not None:
                        return await self._put(ask, verdict)
                case "note":
                    await self._comment(remarks, patch)
                case "diff":
                    await self.terminal.page(on_console(self.terminal.console, patch))
                case "transcript":
                    await self._show_transcript(ask.run_id, _worker(ask, view))
                case _:
                    return Reply.LEFT

    async def _verdict(
        self, chosen: str, ask: PersonAsk, shown: ShownProposal, remarks: list[Remark]
    ) -> dict[str, Any] | None:
        """The verdict with all that it takes; None when the person thought better of it."""
        if chosen == "part":
            return await self._part_verdict(ask, shown)
        decision = Decision(chosen)
        if decision is Decision.APPLY:
            reason = await self._why_all_the_same(shown)
        else:
            reason = await self._reason(decision, remarks)
        return None if reason is None else _verdict(decision, reason, remarks)

    async def _part_verdict(self, ask: PersonAsk, shown: ShownProposal) -> dict[str, Any] | None:
        """Its checks are run once it is chosen; if they are red, it is asked about again."""
        part = await self._part(shown)
        if not part:
            return None
        reason = await self.terminal.line("Why all the same?") if ask.problem else ""
        return {**_verdict(Decision.APPLY, reason or "", []), "choose": part}

    async def _part(self, shown: ShownProposal) -> list[dict[str, Any]]:
        """The files and hunks to land; nothing when the person thought better of it."""
        self.terminal.show(parts_table(shown))
        while typed := await self.terminal.line("Which (such as: 1 3#1,2; empty: back)?"):
            try:
                chosen = choice_of(typed.split(), shown.files)
            except ValidationError as problem:
                self.terminal.say(str(problem), style="red")
                continue
            return list(to_builtins(chosen))
        return []

    async def _why_all_the_same(self, shown: ShownProposal) -> str | None:
        """What to say to an apply, where something has to be; None when it is not to be."""
        if conflict := conflict_sentence(shown):
            self.terminal.say(f"It cannot be applied: {conflict}", style="red")
            return None
        if not (red := red_checks(shown)):
            return ""
        question = f"Checks are red: {red}. Why should it land all the same? (empty: back)"
        return await self.terminal.line(question) or None

    async def _reason(self, decision: Decision, remarks: list[Remark]) -> str | None:
        """Why; None when the person thought better of it. Comments may say it all."""
        if remarks:
            said = f"{len(remarks)} notes go along; empty: nothing more to say"
            return await self.terminal.line(f"{_NEEDS_REASON[decision]} ({said})")
        reason = await self.terminal.line(f"{_NEEDS_REASON[decision]} (empty: back)")
        return reason or None

    async def _comment(self, remarks: list[Remark], patch: bytes) -> None:
        """One remark on a line, kept until there is a verdict."""
        typed = await self.terminal.line(f"{FORM} (empty: back)")
        if not typed:
            return
        try:
            remarks.append(placed(remark_in(typed), patch))
        except AgentCanvasError as error:
            self.terminal.say(str(error), style="red")

    async def _show_transcript(self, run_id: str, agent: str) -> None:
        lines: list[str] = []
        async for entry in self._office.transcript(run_id, agent):
            lines += lines_said(entry.event)
        await self.terminal.page(Text("\n".join(lines) or "Nothing was said."))

    # A plan -------------------------------------------------------------------------------------

    async def _plan(self, ask: PersonAsk, view: RunView) -> Reply:
        data = ask.default
        agents = list(view.agents)
        self.terminal.say(ask.text, style="bold")
        while True:
            plan = plan_in(data)
            if plan is not None:
                await self.terminal.page(plan_table(plan, view.name_of))
            match await self._choice(PLAN_CHOICES):
                case "accept" if data is UNSET:
                    self.terminal.say("There is no plan to accept; edit it first.", style="red")
                case "accept":
                    return await self._put(ask, data)
                case "edit":
                    data = await self._edited_plan(data, agents)
                case "cancel":
                    return await self._put(ask, None)
                case _:
                    return Reply.LEFT

    async def _edited_plan(self, data: Any, agents: list[str]) -> Any:
        """The plan after an edit without problems; the old one if the person gives up."""
        text = as_yaml(data)
        while True:
            text = await self.terminal.edit(text, ".yaml")
            made, problems = edited(text, agents)
            if not problems:
                return made
            for problem in problems:
                self.terminal.say(f"- {problem}", style="red")
            again = await self.terminal.line("Edit it again? (y, or n to go back to the old one)")
            if again is None or not again.lower().startswith("y"):
                return data

    # Anything else ------------------------------------------------------------------------------

    async def _question(self, ask: PersonAsk, view: RunView) -> Reply:
        who = one_line(view.name_of(ask.agent_id), 40)
        self.terminal.show(_card(f"A question for {who}", ask.text, ask.instruction))
        while True:
            line = await self.terminal.line("Your answer (e: in your editor, empty: later)?")
            if not line:
                return Reply.LEFT
            text = await self.terminal.edit("", ".txt") if line == "e" else line
            content, problem = answer_from(text, ask)
            if not problem:
                return await self._put(ask, content)
            self.terminal.say(problem, style="red")

    # --------------------------------------------------------------------------------------------

    async def _choice(self, choices: Choices) -> str:
        """The word a person chose; skip when the input has ended."""
        offered = ", ".join(f"{word} ({key})" for key, word in choices.items())
        while True:
            typed = await self.terminal.line(f"{offered}?")
            if typed is None:
                return "skip"
            word = choices.get(typed.lower(), typed.lower())
            if word in choices.values():
                return word
            if typed:
                self.terminal.say(f"{one_line(typed, 40)} is none of: {offered}", style="red")

    async def _put(self, ask: PersonAsk, content: Any) -> Reply:
        await self._office.answer(ask.ask_id, PersonAnswer(content, person=ask.person))
        return Reply.ANSWERED


def _verdict(decision: Decision, reason: str, remarks: list[Remark]) -> dict[str, Any]:
    verdict: dict[str, Any] = {"decision": decision.value, "reason": reason}
    if remarks and decision is not Decision.APPLY:
        verdict["comments"] = to_builtins(remarks)
    return verdict


def answer_from(text: str, ask: PersonAsk) -> tuple[Any, str]:
    """The answer in a text, and what is wrong with it: data where a form was asked for."""
    if ask.schema is UNSET:
        return text.rstrip("\n"), ""
    document = read_document(text)
    if document.problems or document.data is None:
        found = "; ".join(problem.sentence for problem in document.problems) or "it is empty"
        return None, f"This is neither JSON nor YAML: {found}"
    return document.data, ""


def _worker(ask: PersonAsk, view: RunView) -> str:
    task = view.tasks.get(task_of(ask))
    return task.worker if task else ask.agent_id


def _card(title: str, *texts: str) -> Panel:
    body = Text("\n\n".join(clean(text).strip() for text in texts if text.strip()))
    return Panel(body, title=Text(title), title_align="left", border_style="cyan")


def _review_card(
    ask: PersonAsk, view: RunView, patch: bytes, standing: Sequence[str] = ()
) -> Panel:
    """What the change is for, what it is, and what speaks for it."""
    task_id = task_of(ask)
    task = view.tasks.get(task_id)
    evidence = one_line(task.evidence) if task else ""
    style = evidence_style(task.evidence_status) if task else ""
    body = Text()
    for line in lines_of(ask.text):
        body.append(f"{line}\n", style=style if evidence and evidence in line else "")
    if task is not None and task.summary.strip() not in ask.text:
        body.append("\n" + "\n".join(lines_of(task.summary)) + "\n")
    if evidence and evidence not in ask.text:
        body.append(f"\nChecks: {evidence}\n", style=style)
    for line in standing:
        body.append(f"\n{line}", style="yellow")
    body.append(f"\nChanges: {counted(patch)}")
    who = view.name_of(_worker(ask, view))
    title = Text(f"Review {one_line(task_id, 48)} by {one_line(who, 40)}")
    return Panel(body, title=title, title_align="left", border_style="yellow")
