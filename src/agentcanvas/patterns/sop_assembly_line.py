"""sop_assembly_line (P04): typed documents in a shared pool, and nobody acts before its inputs.

After MetaGPT (arXiv 2308.00352): each role watches some documents and publishes one. It fires when
all that it watches is there. The engineer's code is checked by running it, and QA holds it against
the requirements; what fails goes back to the engineer, three times at most.
"""

from __future__ import annotations

import msgspec

from agentcanvas.pattern import Cast, Most, Outcome, Role, Size, Stage, Work
from agentcanvas.patterns.forms import Positive, Verdict

TRIES = 4
"""The first and three retries."""
TESTS = "tests_passed"

REQUIREMENTS, DESIGN, CODE = "requirements", "design", "code"
WATCHES = {
    "product_manager": (),
    "architect": (REQUIREMENTS,),
    "engineer": (REQUIREMENTS, DESIGN),
    "qa": (REQUIREMENTS, CODE),
}
"""What has to be in the pool before a role acts."""


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


class Options(msgspec.Struct, frozen=True):
    """``max_rounds`` is how often the code is written; never more than four times."""

    max_rounds: Positive = TRIES


class SopAssemblyLine:
    """Requirements, design, code, report."""

    id = "sop_assembly_line"
    options: type[msgspec.Struct] = Options
    roles = (
        Role("product_manager", "says what is wanted"),
        Role("architect", "says how it is built"),
        Role("engineer", "builds it", writes=True),
        Role("qa", "holds it against the requirements"),
    )

    def most(self, size: Size, options: Options) -> Most:
        """Two documents, and so many times code and its report."""
        tries = min(size.rounds or options.max_rounds, TRIES)
        return Most(2 * size.typed + tries * (size.task + size.typed))

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Write the documents, then code until it passes."""
        for role, form, name in _DOCUMENTS:
            words = await _words(stage, role, request)
            document = await stage.ask_for(form, cast[role][0], words)
            if document.value is None:
                return Outcome(f"no {name}: {document.reason}", done=False)
            await stage.post(name, document.text, by=document.agent)
            stage.keep(document.text)
        return await self._build(stage, cast, request, options)

    async def _build(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        engineer, qa = cast["engineer"][0], cast["qa"][0]
        tries = min(stage.ends.rounds or options.max_rounds, TRIES)
        built, report, number = "", "", 0
        async for round_ in stage.rounds(tries):
            number += 1
            words = await _words(round_, "engineer", request, report=report)
            code = await round_.ask(engineer, words, work=Work(f"code-{number}", optional=True))
            if not code.done:
                report = f"The code was not taken, {code.fate}: {code.reason}"
                continue
            built = code.text
            await round_.post(CODE, built, by=engineer)
            stage.keep(built)
            tests = await round_.check(TESTS)
            if not tests.holds:
                report = f"The tests fail. {tests.detail}"
                continue
            verdict = await round_.ask_for(Verdict, qa, await _words(round_, "qa", request))
            if verdict.value is not None and verdict.value.accept:
                return Outcome("accepted", done=True, result=built)
            report = verdict.value.reason if verdict.value else verdict.reason
        return Outcome(f"max_rounds: {tries}", done=False, result=built)


_DOCUMENTS: tuple[tuple[str, type[Requirements | Design], str], ...] = (
    ("product_manager", Requirements, REQUIREMENTS),
    ("architect", Design, DESIGN),
)


async def _words(stage: Stage, role: str, request: str, *, report: str = "") -> str:
    """What a role is asked, with all that it watches; not before everything is there."""
    inputs = {}
    for name in WATCHES[role]:
        published = await stage.read(name)
        assert published, f"{role} acts when the {name} is there"
        inputs[name] = published[-1].text
    return stage.words(f"sop_assembly_line.{role}", request=request, report=report, **inputs)
