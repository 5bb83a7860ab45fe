"""factcheck_tool_verifier (P17): split into claims, have a tool check each, accept or revise.

After SAFE (arXiv 2403.18802) and chain-of-verification (arXiv 2309.11495): the producer answers
with its claims one by one; the verifier checks each with a tool, without seeing the others, and
names what it found; evidence goes on the board and its number is the claim's citation. The judge
accepts what is there or sends it back; without one, it is accepted when nothing is refuted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from agentcanvas.pattern import Ask, Cast, Gate, Most, Outcome, Role, Size, Stage
from agentcanvas.patterns.forms import Positive, Verdict, judged

PRODUCER, VERIFIER, JUDGE = "producer", "verifier", "judge"
EVIDENCE = "evidence"
CITATIONS, TOOL = "citations_count", "tool_check_pass"


class Claims(msgspec.Struct, frozen=True):
    """The claims your answer consists of; each can be checked without the others."""

    claims: Annotated[tuple[str, ...], Meta(min_length=1)]


class Finding(msgspec.Struct, frozen=True):
    """What the tool says of the claim, which source it is (file and line, address, command), and
    the words there that show it."""

    verdict: Literal["supported", "refuted", "not_found"]
    source: str = ""
    quote: str = ""


class Options(msgspec.Struct, frozen=True):
    """``max_claims`` are checked of an answer; ``citations`` it needs, if no gate says it.

    It may be revised until ``max_rounds`` are over.
    """

    max_rounds: Positive = 3
    max_claims: Positive = 10
    citations: Positive = 1


class FactcheckToolVerifier:
    """Produce, check, accept or revise."""

    id = "factcheck_tool_verifier"
    options: type[msgspec.Struct] = Options
    looks_at_gates = True
    roles = (
        Role(PRODUCER, "answers in claims, and revises them"),
        Role(VERIFIER, "checks one claim with a tool"),
        Role(JUDGE, "accepts the supported claims or sends them back", least=0, system=True),
    )

    def most(self, size: Size, options: Options) -> Most:
        """Every round an answer, the check of each claim and a verdict."""
        each = (size.rounds or options.max_rounds) * size.typed
        checks = options.max_claims * each
        return Most.of({PRODUCER: each, VERIFIER: checks, JUDGE: size.count(JUDGE) * each})

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Produce and check until it is accepted, or the rounds are over."""
        gates = [gate for gate in stage.ends.gates if gate.metric in (CITATIONS, TOOL)]
        gates = gates or [Gate(CITATIONS, ">=", options.citations)]
        cited, refused, remark = "", "", ""
        most = stage.ends.rounds or options.max_rounds
        async for round_ in stage.rounds(most):
            facts = {"cited": cited, "refused": refused, "remark": remark}
            facts |= {"request": request, "most": str(options.max_claims)}
            words = stage.words("factcheck_tool_verifier.produce", **facts)
            produced = await round_.ask_for(Claims, cast[PRODUCER][0], words)
            if produced.value is None:
                return Outcome(f"no claims: {produced.reason}", done=False, result=cited)
            claims = produced.value.claims[: options.max_claims]
            supported, refuted = await _checked(round_, cast, claims)
            cited, refused = "\n".join(supported), "\n".join(refuted)
            stage.keep(cited)
            values = {CITATIONS: len(supported), TOOL: int(not refuted)}
            for metric in {gate.metric: None for gate in gates}:
                await round_.check(metric, value=values[metric])
            held = [gate for gate in gates if gate.holds(values[gate.metric])]
            verdict = await _judged(round_, cast, request, cited, refused)
            if verdict.accept and held:
                return Outcome(str(held[0]), done=True, result=cited)
            remark = verdict.reason or f"{len(supported)} claims are supported"
        return Outcome(f"max_rounds: {most}", done=False, result=cited)


async def _checked(stage: Stage, cast: Cast, claims: Sequence[str]) -> tuple[list[str], list[str]]:
    """Claims with the number of their evidence, and those without, each with what is wrong."""
    prompt, verifier = "factcheck_tool_verifier.verify", cast[VERIFIER][0]
    asks = {stage.words(prompt, claim=claim): claim for claim in claims}
    await stage.hand_over([Ask(verifier, words) for words in asks], Finding)
    supported, refuted = [], []
    while came := await stage.collect():
        for ask, answer in came:
            claim, found = asks[ask.message], answer.value
            if found is not None and found.verdict == "supported" and found.source:
                text = f"{claim}\n{found.source}: {found.quote}"
                entry = await stage.post(EVIDENCE, text, by=verifier)
                supported.append(f"{claim} [{entry.number}]")
            else:
                why = f"{found.verdict}. {found.source} {found.quote}" if found else answer.reason
                refuted.append(f"{claim} ({why.strip()})")
    return supported, refuted


async def _judged(stage: Stage, cast: Cast, request: str, cited: str, refused: str) -> Verdict:
    if not cast.get(JUDGE):
        return Verdict(accept=not refused, reason="some claims are not supported")
    facts = {"request": request, "cited": cited, "refused": refused}
    return await judged(stage, cast[JUDGE][0], "factcheck_tool_verifier.judge", **facts)
