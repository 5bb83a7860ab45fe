"""role_play_pair (P02): a user instructs, an assistant solves, and neither leaves its role.

After CAMEL (arXiv 2303.17760): inception prompts fix the roles, then the user gives one instruction
a turn and the assistant answers it with a solution. It ends when the user says that the task is
done, gives no instruction for ``idle_rounds`` rounds, one of them takes the other's role, or the
messages or tokens are used up.
"""

from __future__ import annotations

import re

import msgspec

from agentcanvas.pattern import Cast, Most, Outcome, Role, Size, Stage, Work
from agentcanvas.patterns.forms import Positive

USER = "user"
ASSISTANT = "assistant"

_DONE = "TASK_DONE"
_MARKED = re.compile(r"^[^\w\n]*(instruction|solution)[^\w\n]*:", re.IGNORECASE | re.MULTILINE)


class Options(msgspec.Struct, frozen=True):
    """``max_rounds`` is the limit of messages: an instruction and its solution are a round.

    ``idle_rounds`` in a row without an instruction end it too.
    """

    max_rounds: Positive = 6
    idle_rounds: Positive = 3


class RolePlayPair:
    """One instruction a turn, one solution in return."""

    id = "role_play_pair"
    options: type[msgspec.Struct] = Options
    roles = (
        Role(USER, "gives one instruction a turn and says when the task is done"),
        Role(ASSISTANT, "answers each instruction with a solution", writes=True),
    )

    def most(self, size: Size, options: Options) -> Most:
        """Every round an instruction and its solution."""
        rounds = size.rounds or options.max_rounds
        return Most.of({USER: rounds * size.ask, ASSISTANT: rounds * size.task})

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Take turns until one of the ends is reached."""
        user, assistant = cast[USER][0], cast[ASSISTANT][0]
        most = stage.ends.rounds or options.max_rounds
        solution, idle, number = "", 0, 0
        async for round_ in stage.rounds(most):
            number += 1
            said = await round_.ask(
                user, stage.words("role_play_pair.user", request=request, solution=solution)
            )
            role = _role(said.text)
            if role == "solution":
                return Outcome("role_flip: the user gave a solution", done=False, result=solution)
            if role is None and _DONE in said.text:
                return Outcome("task_done", done=True, result=solution)
            idle = 0 if role and said.done else idle + 1
            if idle == options.idle_rounds:
                return Outcome(f"no_instruction: {idle} rounds", done=False, result=solution)
            if idle:
                continue
            words = stage.words("role_play_pair.assistant", request=request, instruction=said.text)
            work = Work(f"solution-{number}", optional=True)
            answer = await round_.ask(assistant, words, work=work)
            if _role(answer.text) == "instruction":
                return Outcome(
                    "role_flip: the assistant gave an instruction", done=False, result=solution
                )
            solution = answer.text if answer.done else f"{answer.fate}: {answer.reason}"
            stage.keep(solution)
        return Outcome(f"max_rounds: {most}", done=False, result=solution)


def _role(text: str) -> str | None:
    """Whose words these are, by the mark they begin with."""
    found = _MARKED.search(text)
    return found[1].lower() if found else None
