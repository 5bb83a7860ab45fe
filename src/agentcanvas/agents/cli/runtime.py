"""A coding CLI as an agent: asked in its own terms, heard in its own stream.

One run of the program a turn, confined like any command; what it came to is for ``judgement``. A
CLI that goes back to a session it does not know is asked anew.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio.to_thread
from msgspec import structs

from agentcanvas.agents.answers import JsonForm
from agentcanvas.agents.cli.adapter import Adapter, Ask, Invocation, ModelAccess
from agentcanvas.agents.cli.find import find, folders_of
from agentcanvas.agents.cli.heard import Heard
from agentcanvas.agents.cli.judgement import Judgement
from agentcanvas.agents.cli.kit import UNCONFINED, CliWishes, Kit, Price, Servers
from agentcanvas.agents.cli.litter import sweep, there
from agentcanvas.agents.cli.own_login import Tell
from agentcanvas.agents.cli.streams import Lines
from agentcanvas.agents.confined import (
    Environment,
    hand_in,
    named_environment,
    place_of,
    run_heard,
)
from agentcanvas.agents.private import write_private
from agentcanvas.agents.runtime import (
    UNSTAMPED,
    Emit,
    Turn,
    TurnResult,
    failed,
)
from agentcanvas.clock import Clock
from agentcanvas.errors import ExecutionError, SandboxError
from agentcanvas.protocol.records import FailureClass, RawEvent
from agentcanvas.sandbox.confine import Command, Confinement, View
from agentcanvas.sandbox.process import Limits

OUTPUT_BYTES = 128 * 1024 * 1024
"""Some streams repeat a whole conversation with every word; half of this is held at most."""

_GRACE_S = 3.0
_LONGEST_WORD = 120_000
_NO_KEY = "none"


class CliRuntime:
    """Runs one CLI, a process a turn."""

    def __init__(
        self,
        adapter: Adapter,
        confinement: Confinement,
        clock: Clock,
        *,
        wishes: CliWishes | None = None,
        environ: Mapping[str, str] | None = None,
        servers: Servers | None = None,
        price: Price | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._facts = adapter.facts
        self._kit = Kit(
            adapter,
            confinement,
            clock,
            wishes or CliWishes(),
            os.environ if environ is None else environ,
            servers or (lambda _turn, _places: ()),
            price or (lambda _usage: None),
            limits or Limits(output_bytes=OUTPUT_BYTES, grace_s=_GRACE_S),
        )

    async def run(self, turn: Turn, emit: Emit) -> TurnResult:
        """Run the CLI with the turn's prompt."""
        try:
            program = self._kit.wishes.program
            if not program:
                found = await find(self._facts, self._kit.environ)
                if not found.usable:
                    return failed(f"{found.problem}.", FailureClass.CRASH)
                program = (found.program,)
            notes: list[str] = []

            def tell(said: str) -> None:
                emit(RawEvent(line=f"login: {said}", **UNSTAMPED))
                notes.append(said)

            async with place_of(turn) as view, self._logged_in(view, tell):
                result = await self._run_in(view, program, turn, emit)
            return structs.replace(result, notes=(*result.notes, *notes))
        except (SandboxError, ExecutionError) as error:
            return failed(f"{error}.", FailureClass.CRASH)
        except OSError as error:  # a full disk, a folder that went away meanwhile
            return failed(f"The turn could not be prepared: {error}.", FailureClass.CRASH)

    async def _run_in(
        self, view: View, program: tuple[str, ...], turn: Turn, emit: Emit
    ) -> TurnResult:
        resume = turn.session_id if self._facts.resumes and turn.session_id else ""
        once = _Once(self._kit, turn, emit, view, program)
        result = await once.go(resume)
        if resume and once.judgement.has_lost_its_session:
            note = f"{self._facts.title} no longer knows its session; it was told all again."
            result = await _Once(self._kit, turn, emit, view, program).go("")
            result = structs.replace(result, notes=(*result.notes, note))
        return result

    @asynccontextmanager
    async def _logged_in(self, view: View, tell: Tell) -> AsyncIterator[None]:
        login = self._kit.wishes.login
        if login is None:
            yield
            return
        async with login.lent_to(view.home, tell):
            yield


class _Once:
    """One run of the program."""

    def __init__(
        self, kit: Kit, turn: Turn, emit: Emit, view: View, program: tuple[str, ...]
    ) -> None:
        self._kit = kit
        self._facts = kit.adapter.facts
        self._confinement = kit.confinement
        self._wishes = kit.wishes
        self._turn = turn
        self._emit = emit
        self._view = replace(
            view, read_only=(*view.read_only, *folders_of(program[0], view.workspace))
        )
        self._program = program
        places = self._confinement.places(self._view)
        self._heard = Heard(emit, str(places.tree), kit.clock.now_ms())
        self._places = places
        self._ways = turn.out.variables(places)
        names = tuple(name for name in turn.env if name not in self._ways)
        self._environment = named_environment(names, kit.environ)
        bounds = structs.replace(kit.limits, deadline_s=turn.timeout_s, silence_s=turn.silent_s)
        self.judgement = Judgement(kit, turn, self._heard, bounds, self._environment.notes)

    async def go(self, resume: str) -> TurnResult:
        """Run it to its end, or go on with a session."""
        problem = self._no_way_to_the_model(self._kit.environ)
        if problem:
            return failed(problem, FailureClass.AUTH)
        model = self._model_access(self._kit.environ)
        invocation = self._kit.adapter.invoke(self._ask(model, resume))
        if max(len(word.encode("utf-8", "replace")) for word in invocation.argv) > _LONGEST_WORD:
            return failed(
                f"The prompt is too long for the command line of {self._facts.title}, and it "
                "takes none from elsewhere; make the task shorter.",
                FailureClass.CRASH,
            )
        await anyio.to_thread.run_sync(write_private, self._view.home, invocation.files)
        before = there(self._view.tree, self._facts.litter)
        secrets = {**self._environment.values, **self._secrets(model)}
        self._heard.begin(invocation.session)
        hearing = Lines(self._kit.adapter.reader(self._heard))
        redact = Environment(secrets).redacted
        self._tell_command(invocation, redact)
        try:
            ending = await run_heard(
                self._confinement,
                self._kit.clock,
                self._view,
                self._command(invocation),
                limits=self.judgement.bounds,
                hear=lambda line: hearing(structs.replace(line, text=redact(line.text))),
                emit=self._emit,
            )
        finally:
            hearing.close()
            if self._view.writable:
                await anyio.to_thread.run_sync(sweep, self._view.tree, self._facts.litter, before)
        return self.judgement.result(ending)

    # -- asking ----------------------------------------------------------------------------------

    def _ask(self, model: ModelAccess, resume: str) -> Ask:
        turn, wishes = self._turn, self._wishes
        images = tuple(hand_in(turn.images, self._confinement, self._view))
        form = turn.form
        confined = self._confinement.name != UNCONFINED
        return Ask(
            prompt=turn.prompt.replace("\0", "\ufffd"),
            places=self._places,
            model=model,
            system=wishes.system,
            images=images,
            servers=tuple(self._kit.servers(turn, self._places)),
            schema=form.schema if isinstance(form, JsonForm) else None,
            max_turns=wishes.max_turns,
            session=str(uuid.uuid4()),
            resume=resume,
            retries=wishes.retries,
            confined=confined or wishes.bypass,
            writable=self._view.writable,
        )

    def _no_way_to_the_model(self, environ: Mapping[str, str]) -> str:
        provider = self._wishes.provider
        if provider is None:
            return ""
        if provider.key_env and not environ.get(provider.key_env):
            return (
                f"{provider.key_env} is not set, and {self._facts.title} needs it; export it, or "
                "name another variable with keyEnv"
            )
        return ""

    def _model_access(self, environ: Mapping[str, str]) -> ModelAccess:
        provider, model = self._wishes.provider, self._wishes.model
        if provider is None:
            return ModelAccess(model=model)
        door = self._turn.out.door
        if door is not None:
            address = door.model_url(self._places, provider.name)
            return ModelAccess(
                api=provider.api,
                url=provider.base(address),
                key=door.token,
                model=model,
                service=provider.key_env,
            )
        key = environ.get(provider.key_env, "") if provider.key_env else ""
        url = provider.base(provider.endpoint.url)
        return ModelAccess(
            api=provider.api,
            url=url,
            key=key or _NO_KEY,
            model=model,
            service=provider.key_env,
        )

    def _secrets(self, model: ModelAccess) -> dict[str, str]:
        provider = self._wishes.provider
        name = (provider.key_env if provider else "") or "KEY"
        return {name: model.key} if model.key and model.key != _NO_KEY else {}

    def _command(self, invocation: Invocation) -> Command:
        program, *words = invocation.argv
        first = self._program if program == self._facts.programs[0] else (program,)
        env = {**self._ways, **invocation.env, **self._environment.values}
        return Command((*first, *words), stdin=invocation.stdin, env=env)

    def _tell_command(self, invocation: Invocation, redact: Callable[[str], str]) -> None:
        """Put the command line on record: which of its own questions are turned off is in it."""
        shown = " ".join(_word(word) for word in invocation.argv)
        self._emit(RawEvent(line=redact(f"$ {shown}"), **UNSTAMPED))


def _word(word: str) -> str:
    """A word of a command line for the record; a prompt in it would say everything twice."""
    most = 200
    short = word if len(word) <= most else f"{word[:most]}…"
    return short if short.isprintable() and " " not in short else repr(short)
