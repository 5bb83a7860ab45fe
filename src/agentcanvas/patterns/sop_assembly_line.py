"""sop_assembly_line (P04): typed documents in a shared pool, and nobody acts before its inputs.

After MetaGPT (arXiv 2308.00352): each role watches some documents and publishes one. It fires when
all that it watches is there. Whoever works with a document next verifies it; the engineer's code is
checked by running it, and QA holds it against the requirements. What fails goes back to its author,
three times at most.
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
    """``max_rounds`` is how often a document or the code is written; at most four times."""

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
        """So many times two documents and their verdicts, and code and its report."""
        tries = min(size.rounds or options.max_rounds, TRIES)
        return Most(tries * (2 * 2 * size.typed + size.task + size.typed))

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Write the documents, then code until it passes."""
        tries = min(stage.ends.rounds or options.max_rounds, TRIES)
        for role, form, name, reader in _DOCUMENTS:
            report = await _document(stage, cast, request, (role, form, name, reader), tries)
            if report:
                return Outcome(f"no {name}: {report}", done=False)
        return await self._build(stage, cast, request, tries)

    async def _build(self, stage: Stage, cast: Cast, request: str, tries: int) -> Outcome:
        engineer, qa = cast["engineer"][0], cast["qa"][0]
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


_Document = tuple[str, type[Requirements | Design], str, str]
_DOCUMENTS: tuple[_Document, ...] = (
    ("product_manager", Requirements, REQUIREMENTS, "architect"),
    ("architect", Design, DESIGN, "engineer"),
)
"""Who writes what, and who verifies it."""


async def _document(stage: Stage, cast: Cast, request: str, document: _Document, tries: int) -> str:
    """Publish a document until its reader accepts it; what is wrong if none was."""
    role, form, name, reader = document
    report = ""
    async for round_ in stage.rounds(tries):
        words = await _words(round_, role, request, report=report)
        written = await round_.ask_for(form, cast[role][0], words)
        if written.value is None:
            return written.reason
        await round_.post(name, written.text, by=written.agent)
        stage.keep(written.text)
        words = stage.words(
            "sop_assembly_line.verify", request=request, title=name, document=written.text
        )
        verdict = await round_.ask_for(Verdict, cast[reader][0], words)
        if verdict.value is not None and verdict.value.accept:
            return ""
        report = verdict.value.reason if verdict.value else verdict.reason
    return report or "it was not accepted"


async def _words(stage: Stage, role: str, request: str, *, report: str = "") -> str:
    """What a role is asked, with all that it watches; not before everything is there."""
    inputs = {}
    for name in WATCHES[role]:
        published = await stage.read(name)
        assert published, f"{role} acts when the {name} is there"
        inputs[name] = published[-1].text
    return stage.words(f"sop_assembly_line.{role}", request=request, report=report, **inputs)
