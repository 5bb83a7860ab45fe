"""chat_chain_pipeline (P03): stages in a row, each a short dialogue, and only conclusions go on.

After ChatDev (arXiv 2307.07924): in each stage an instructor and an assistant talk, here the role
before it and the stage's own; the first is instructed by the second, who has to work with what
comes of it. The assistant may ask back before it answers; the instructor accepts the draft or says
what to change; a draft that two modifications left unchanged ends the stage too. The next stage
hears the conclusion and nothing of the dialogue.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from agentcanvas.pattern import Answer, Cast, Most, Outcome, Role, Size, Stage, Work
from agentcanvas.patterns.forms import Positive, Verdict

DUTIES = {
    "planner": "say what has to be done, in order",
    "designer": "say how it is built",
    "coder": "build it",
    "tester": "test it, and say what fails",
    "doc_writer": "describe it for those who use it",
}
CONCLUSIONS = "conclusions"

_QUESTION = "question:"
_UNCHANGED = 2
"""So many modifications in a row that change nothing end a stage."""


class Options(msgspec.Struct, frozen=True):
    """``max_rounds`` is how often a stage may go to and fro."""

    max_rounds: Positive = 2


class ChatChainPipeline:
    """Plan, design, code, test, describe."""

    id = "chat_chain_pipeline"
    options: type[msgspec.Struct] = Options
    looks_at_gates = True
    roles = tuple(Role(name, duty, writes=True) for name, duty in DUTIES.items())

    def most(self, size: Size, options: Options) -> Most:
        """Each round of a stage is a draft, and a remark or an answer to a question."""
        rounds = size.rounds or options.max_rounds
        turns = dict.fromkeys(DUTIES, rounds * size.task)
        for instructor, _ in _stages():
            turns[instructor] += rounds * max(size.typed, size.ask)
        return Most.of(turns)

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """One stage after the other; a stage without a conclusion ends the chain."""
        most = stage.ends.rounds or options.max_rounds
        conclusion = ""
        for instructor, name in _stages():
            pair = cast[instructor][0], cast[name][0]
            drafted = await _dialogue(stage, name, pair, request, conclusion, most=most)
            if not drafted.done:
                reason = f"{name} {drafted.fate}: {drafted.reason}"
                return Outcome(reason, done=False, result=conclusion)
            conclusion = drafted.text
            await stage.post(CONCLUSIONS, conclusion, by=cast[name][0])
            stage.keep(conclusion)
        for gate in stage.ends.gates:
            measure = await stage.check(gate.metric)
            if not measure.holds:
                return Outcome(f"{gate} does not hold", done=False, result=conclusion)
        return Outcome("concluded", done=True, result=conclusion)


def _stages() -> Iterator[tuple[str, str]]:
    """Who instructs whom, in their order; the first is instructed by the second."""
    names = list(DUTIES)
    return zip([names[1], *names], names, strict=False)


async def _dialogue(
    stage: Stage, name: str, pair: tuple[str, str], request: str, before: str, *, most: int
) -> Answer[None]:
    """The last draft of a stage, accepted or not."""
    instructor, assistant = pair
    draft: Answer[None] | None = None
    remark, unchanged, number = "", 0, 0
    async for round_ in stage.rounds(most):
        number += 1
        words = stage.words(
            "chat_chain_pipeline.stage",
            role=name.replace("_", " "),
            duty=DUTIES[name],
            request=request,
            before=before,
            draft=draft.text if draft else "",
            remark=remark,
        )
        answer = await round_.ask(assistant, words, work=Work(f"{name}-{number}", optional=True))
        if not answer.done:
            return draft or answer
        if number == 1 < most and answer.text.lstrip().casefold().startswith(_QUESTION):
            asked = stage.words(
                "chat_chain_pipeline.answer",
                request=request,
                before=before,
                question=answer.text,
            )
            remark = (await round_.ask(instructor, asked)).text
            continue
        unchanged = unchanged + 1 if draft and answer.text == draft.text else 0
        draft = answer
        if unchanged == _UNCHANGED:
            break
        review = stage.words(
            "chat_chain_pipeline.review", request=request, before=before, draft=draft.text
        )
        verdict = await round_.ask_for(Verdict, instructor, review)
        if verdict.value is None or verdict.value.accept:
            break
        remark = verdict.value.reason
    assert draft is not None, "a question is answered within the rounds"
    return draft
