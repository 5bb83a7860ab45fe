"""sop_assembly_line (P04): typed documents in a shared pool, and nobody acts before its inputs.

After MetaGPT (arXiv 2308.00352): each role watches some documents and publishes one. It fires when
all that it watches is there. Whoever works with a document next verifies it; the engineer's code is
checked by running it, then QA holds it to the requirements. What fails goes back, thrice at most.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec

from agentcanvas.pattern import Answer, Cast, Most, Outcome, Role, Size, Stage, Work
from agentcanvas.patterns.forms import Positive, judged

TRIES = 4
"""The first and three retries."""

REQUIREMENTS, DESIGN, CODE = "requirements", "design", "code"


class Requirements(msgspec.Struct, frozen=True):
    """What is wanted, and how one sees that it is there."""

    goal: str
    requirements: tuple[str, ...]
    acceptance_criteria: tuple[str, ...]


class Design(msgspec.Struct, frozen=True):
    """How it is built: files and what each is for, interfaces, and the order of the work."""

    approach: str
    files: tuple[str, ...]
    interfaces: tuple[str, ...] = ()


_LINE: dict[str, tuple[tuple[str, ...], str, type[Requirements | Design] | None]] = {
    "product_manager": ((), REQUIREMENTS, Requirements),
    "architect": ((REQUIREMENTS,), DESIGN, Design),
    "engineer": ((REQUIREMENTS, DESIGN), CODE, None),
    "qa": ((REQUIREMENTS, CODE), "", None),
}
"""What each role watches, what it makes, and in which form; the next one verifies it."""


class Options(msgspec.Struct, frozen=True):
    """``max_rounds`` is how often a document or the code is written; at most four times."""

    max_rounds: Positive = TRIES


class SopAssemblyLine:
    """Requirements, design, code, report."""

    id = "sop_assembly_line"
    options: type[msgspec.Struct] = Options
    looks_at_gates = True
    roles = (
        Role("product_manager", "says what is wanted"),
        Role("architect", "says how it is built"),
        Role("engineer", "builds it", writes=True),
        Role("qa", "holds it against the requirements"),
    )

    def most(self, size: Size, options: Options) -> Most:
        """So many times two documents, the code, and the verdict of whoever works with each."""
        tries = min(size.rounds or options.max_rounds, TRIES)
        typed, task = tries * size.typed, tries * size.task
        roles = ("product_manager", "architect", "engineer", "qa")
        return Most.of(dict(zip(roles, (typed, 2 * typed, typed + task, typed), strict=True)))

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Write the documents, then code until it passes."""
        tries = min(stage.ends.rounds or options.max_rounds, TRIES)
        built = ""
        for role, reader in pairwise(_LINE):
            _, name, form = _LINE[role]
            built, report, number = "", "", 0
            async for round_ in stage.rounds(tries):
                number += 1
                facts = await _facts(round_, role, request, report)
                words = stage.words(f"sop_assembly_line.{role}", **facts)
                to, work = cast[role][0], Work(f"{name}-{number}", optional=True)
                made: Answer[Any] = (
                    await round_.ask_for(form, to, words)
                    if form
                    else await round_.ask(to, words, work=work)
                )
                if not made.done and form is not None:
                    return Outcome(f"no {name}: {made.reason}", done=False)
                report = f"The {name} was not taken, {made.heard}"
                if made.done:
                    built = made.text
                    await round_.post(name, built, by=made.agent)
                    stage.keep(built)
                    report = await _wrong(round_, cast[reader][0], request, name, built)
                if not report:
                    break
            else:
                reason = f"no {name}: {report}" if form else f"max_rounds: {tries}"
                return Outcome(reason, done=False, result="" if form else built)
        return Outcome("accepted", done=True, result=built)


async def _wrong(stage: Stage, reader: str, request: str, name: str, made: str) -> str:
    """What whoever works with it next has against it, and against code the tests before."""
    facts = {"request": request, "title": name, "document": made}
    prompt = "sop_assembly_line.verify"
    if name == CODE:
        tests = await stage.check("tests_passed")
        if not tests.holds:
            return f"The tests fail. {tests.detail}"
        facts, prompt = await _facts(stage, "qa", request), "sop_assembly_line.qa"
    verdict = await judged(stage, reader, prompt, **facts)
    return "" if verdict.accept else verdict.reason or "it was not accepted"


async def _facts(stage: Stage, role: str, request: str, report: str = "") -> dict[str, str]:
    """All that a role watches; it is not asked before everything is there."""
    facts = {"request": request, "report": report}
    for name in _LINE[role][0]:
        published = await stage.read(name)
        assert published, f"{role} acts when the {name} is there"
        facts[name] = published[-1].text
    return facts
