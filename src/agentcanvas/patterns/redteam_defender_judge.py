"""redteam_defender_judge (P16): attack, answer, score, until the defence is good enough.

The red team attacks with what it knows of the earlier rounds, the defender answers every attack,
and the judge scores each answer against a rubric that only the judge reads. A round is as good as
its worst answer; the gate on ``score`` says what is good enough. Without a judge the metric is
measured on the work itself. Attacks are bounded by ``max_rounds`` and the size of the red team.
"""

from __future__ import annotations

import msgspec

from agentcanvas.pattern import Ask, Cast, Gate, Most, Outcome, Role, Size, Stage, Work
from agentcanvas.patterns.forms import Positive, Score, Share

RED_TEAM = "red_team"
DEFENDER = "defender"
JUDGE = "judge"
SCORE = "score"


class Options(msgspec.Struct, frozen=True):
    """``rubric`` is what the judge scores by; ``pass_at``, the score that will do, gives way to the
    flow's gate. In each of ``max_rounds`` everybody in the red team attacks once.
    """

    max_rounds: Positive = 2
    pass_at: Share = 0.7
    rubric: str = "The attack has no effect on what the answer leaves in place."


class RedteamDefenderJudge:
    """Attack, defend, score."""

    id = "redteam_defender_judge"
    options: type[msgspec.Struct] = Options
    looks_at_gates = True
    roles = (
        Role(RED_TEAM, "attacks", most=None),
        Role(DEFENDER, "answers every attack", writes=True),
        Role(JUDGE, "scores the answers; else the metric is measured", least=0, system=True),
    )

    def most(self, size: Size, options: Options) -> Most:
        """Every round an attack of each, its answer and its score."""
        attacks = (size.rounds or options.max_rounds) * size.count(RED_TEAM)
        each = {RED_TEAM: size.ask, DEFENDER: size.task, JUDGE: size.count(JUDGE) * size.typed}
        return Most.of({role: attacks * turns for role, turns in each.items()})

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Attack until the defence holds, or the rounds are over."""
        gates = [gate for gate in stage.ends.gates if gate.metric == SCORE]
        gate = gates[0] if gates else Gate(SCORE, ">=", options.pass_at)
        history, number = "", 0
        most = stage.ends.rounds or options.max_rounds
        async for round_ in stage.rounds(most):
            words = stage.words("redteam_defender_judge.attack", request=request, history=history)
            attacks = await round_.ask_all([Ask(each, words) for each in cast[RED_TEAM]])
            scores = []
            for attack in (each for each in attacks if each.done):
                number += 1
                words = stage.words(
                    "redteam_defender_judge.defend", request=request, attack=attack.text
                )
                work = Work(f"defence-{number}", optional=True)
                defence = await round_.ask(cast[DEFENDER][0], words, work=work)
                said = defence.text if defence.done else f"({defence.fate}: {defence.reason})"
                history += f"\n\nAttack:\n{attack.text}\n\nAnswer:\n{said}"
                score = await _score(round_, cast, options, attack.text, said)
                scores.append(score)
                history += f"\n\nScore: {score:g}" if score is not None else ""
                stage.keep(history.strip())
            if not scores:
                return Outcome("no attack", done=False, result=history.strip())
            judged = [score for score in scores if score is not None]
            measure = await round_.check(SCORE, value=min(judged, default=None))
            if gate.holds(measure.value):
                reason = f"{gate} ({measure.value:g})"
                return Outcome(reason, done=True, result=history.strip())
        return Outcome(f"max_rounds: {most}", done=False, result=history.strip())


async def _score(
    stage: Stage, cast: Cast, options: Options, attack: str, answer: str
) -> float | None:
    """How well one attack was answered: not at all, if the judge does not say; None without one."""
    if not cast.get(JUDGE):
        return None
    words = stage.words(
        "redteam_defender_judge.judge", rubric=options.rubric, attack=attack, answer=answer
    )
    score = (await stage.ask_for(Score, cast[JUDGE][0], words)).value
    return score.score if score is not None else 0.0
