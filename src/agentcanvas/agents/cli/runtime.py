"""A coding CLI as an agent: asked in its own terms, heard in its own stream, judged by that.

One run of the program a turn, confined like any command. What the exit code says only counts where
the stream says nothing; a CLI that goes back to a session it does not know is asked anew.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import anyio.to_thread
from msgspec import UNSET, Struct, structs

from agentcanvas.agents.answers import JsonForm
from agentcanvas.agents.cli.adapter import Adapter, Ask, Invocation, ModelAccess, Server
from agentcanvas.agents.cli.failures import why
from agentcanvas.agents.cli.find import find, folders_of
from agentcanvas.agents.cli.heard import Heard
from agentcanvas.agents.cli.own_login import Login
from agentcanvas.agents.cli.private import sweep, there, write_private
from agentcanvas.agents.cli.providers import Provider
from agentcanvas.agents.cli.streams import Lines
from agentcanvas.agents.confined import (
    NOT_FOUND,
    Environment,
    end_of,
    hand_in,
    named_environment,
    place_of,
    run_heard,
    survived,
)
from agentcanvas.agents.runtime import (
    UNSTAMPED,
    Emit,
    Outcome,
    Turn,
    TurnResult,
    answered,
    failed,
)
from agentcanvas.clock import Clock
from agentcanvas.errors import ExecutionError, SandboxError
from agentcanvas.protocol.records import FailureClass, RawEvent, Usage
from agentcanvas.sandbox.confine import Command, Confinement, Places, View
from agentcanvas.sandbox.process import Cause, Ending, Limits

OUTPUT_BYTES = 128 * 1024 * 1024
"""Some streams repeat a whole conversation with every word; half of this is held at most."""

UNCONFINED = "unconfined"
_GRACE_S = 3.0
_LONGEST_WORD = 120_000
_MOST_DENIED = 3
_NO_KEY = "none"

Servers = Callable[[Turn, Places], Sequence[Server]]
"""The MCP servers that a member gets; asked at the beginning of each turn."""

Price = Callable[[Usage], float | None]
"""What a number of tokens costs, in US dollars, as far as a price is known."""


class CliWishes(Struct, frozen=True, kw_only=True):
    """What a flow and the settings say about a member that is a CLI.

    ``provider`` is the model service that it gets a key for; without one it uses a login of its
    own, lent from ``login``. ``program`` stands for the one on the PATH. ``bypass`` turns its own
    questions off even where nothing else confines it.
    """

    model: str = ""
    provider: Provider | None = None
    login: Login | None = None
    program: tuple[str, ...] = ()
    system: str = ""
    max_turns: int | None = None
    retries: int = 2
    bypass: bool = False


@dataclass(frozen=True)
class _Kit:
    """What every run of a CLI needs."""

    adapter: Adapter
    confinement: Confinement
    clock: Clock
    wishes: CliWishes
    environ: Mapping[str, str]
    servers: Servers
    price: Price
    limits: Limits
    counted: dict[str, Usage] = field(default_factory=dict)
    """What sessions have counted so far, where they go on counting."""


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
        self._kit = _Kit(
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
            async with place_of(turn) as view, self._logged_in(view):
                return await self._run_in(view, program, turn, emit)
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
        if resume and once.has_lost_its_session:
            note = f"{self._facts.title} no longer knows its session; it was told all again."
            result = await _Once(self._kit, turn, emit, view, program).go("")
            result = structs.replace(result, notes=(*result.notes, note))
        return result

    @asynccontextmanager
    async def _logged_in(self, view: View) -> AsyncIterator[None]:
        login = self._kit.wishes.login
        if login is None:
            yield
            return
        async with login.lent_to(view.home):
            yield


class _Once:
    """One run of the program."""

    def __init__(
        self, kit: _Kit, turn: Turn, emit: Emit, view: View, program: tuple[str, ...]
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
                limits=self._bounded(),
                hear=lambda line: hearing(structs.replace(line, text=redact(line.text))),
                emit=self._emit,
            )
        finally:
            hearing.close()
            if self._view.writable:
                await anyio.to_thread.run_sync(sweep, self._view.tree, self._facts.litter, before)
        return self._result(ending)

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

    def _bounded(self) -> Limits:
        turn = self._turn
        limits = self._kit.limits
        return structs.replace(limits, deadline_s=turn.timeout_s, silence_s=turn.silent_s)

    def _tell_command(self, invocation: Invocation, redact: Callable[[str], str]) -> None:
        """Put the command line on record: which of its own questions are turned off is in it."""
        shown = " ".join(_word(word) for word in invocation.argv)
        self._emit(RawEvent(line=redact(f"$ {shown}"), **UNSTAMPED))

    # -- judging ---------------------------------------------------------------------------------

    def _result(self, ending: Ending) -> TurnResult:
        heard, turn = self._heard, self._turn
        notes = tuple(self._notes(ending))
        usage = self._priced(self._of_this_turn(heard.usage))
        common: dict[str, Any] = {
            "usage": usage,
            "session_id": heard.session or None,
            "exit_code": ending.exit_code,
            "left_over": ending.survivors,
            "notes": notes,
        }
        stopped = self._stopped(ending)
        if stopped is not None:
            outcome, error, failure = stopped
        elif heard.failure is not None:
            outcome, failure = Outcome.FAILED, heard.failure
            error = f"{self._facts.title}: {heard.error}"
        elif heard.ended:
            return answered(turn, heard.answer, **common)
        else:
            outcome, (error, failure) = Outcome.FAILED, self._ended_without_a_word(ending)
        result = failed(
            error if error.endswith(".") else f"{error}.",
            failure,
            outcome=outcome,
            text=heard.answer,
            **common,
        )
        return structs.replace(result, retry_at_ms=heard.retry_at_ms)

    def _stopped(self, ending: Ending) -> tuple[Outcome, str, FailureClass] | None:
        """What ended it, when it was not itself."""
        if ending.cause is Cause.EXITED:
            return None
        end = end_of(ending, self._facts.title, self._bounded(), self._heard.last_words)
        return end.outcome, end.error, end.error_class or FailureClass.CRASH

    def _ended_without_a_word(self, ending: Ending) -> tuple[str, FailureClass]:
        """The stream broke off: exit code and last words are all there is."""
        heard, code, title = self._heard, ending.exit_code, self._facts.title
        if heard.denied:
            return f"{title} was refused {_some(heard.denied)} and gave up", FailureClass.DENIED
        said = f": {heard.last_words}" if heard.last_words else ""
        if known := self._facts.exit_codes.get(code):
            return f"{title} ended with exit code {code}{said}", known
        if code == NOT_FOUND:
            return f"{title} could not be started{said}", FailureClass.CRASH
        if code == 0:
            return f"{title} ended without an answer{said}", _crash(why(heard.last_words))
        end = end_of(ending, title, self._bounded(), heard.last_words)
        failure = why(heard.last_words) if code > 0 else FailureClass.CRASH
        return end.error, _crash(failure)

    def _notes(self, ending: Ending) -> list[str]:
        heard, title = self._heard, self._facts.title
        notes = list(self._environment.notes)
        if heard.denied and heard.ended:
            notes.append(f"{title} refused itself {_some(heard.denied)}.")
        well = heard.ended and heard.failure is None and ending.cause is Cause.EXITED
        if well and ending.exit_code:
            notes.append(f"{title} ended with exit code {ending.exit_code} after its answer.")
        if heard.unread:
            said = "line was" if heard.unread == 1 else "lines were"
            notes.append(
                f"{heard.unread} {said} not understood of {title}; the transcript has all of it."
            )
        if self._wishes.bypass and self._confinement.name == UNCONFINED:
            notes.append(f"{title} ran without confinement and with its own checks turned off.")
        if ending.survivors:
            notes.append(survived(ending.survivors))
        return notes

    def _of_this_turn(self, usage: Usage) -> Usage:
        """What was used since the session was last heard of."""
        session, names = self._heard.session, self._facts.totals
        before = self._kit.counted.get(session)
        if session and names:
            self._kit.counted[session] = usage
        if before is None:
            return usage
        known = {
            name: (getattr(usage, name), getattr(before, name))
            for name in names
            if UNSET not in (getattr(usage, name), getattr(before, name))
        }
        return structs.replace(
            usage, **{name: max(0, now - then) for name, (now, then) in known.items()}
        )

    def _priced(self, usage: Usage) -> Usage:
        """The usage with a cost by estimate where the CLI tells tokens only."""
        if usage.cost is not UNSET or usage == Usage():
            return usage
        named = usage
        if usage.model is UNSET and self._wishes.model:
            named = structs.replace(usage, model=self._wishes.model)
        cost = self._kit.price(named)
        return named if cost is None else structs.replace(named, cost=cost, estimated=True)

    @property
    def has_lost_its_session(self) -> bool:
        """Whether it failed because it does not know the session it was to go on with."""
        heard = self._heard
        said = f"{heard.error} {heard.last_words}".lower()
        unknown = ("not found", "no conversation", "no session", "does not exist", "unknown", "no ")
        return (
            not heard.ended
            and "session" in said.replace("conversation", "session").replace("thread", "session")
            and any(word in said for word in unknown)
        )


def _crash(failure: FailureClass) -> FailureClass:
    return FailureClass.CRASH if failure is FailureClass.UNKNOWN else failure


def _some(denied: Sequence[str]) -> str:
    shown = ", ".join(dict.fromkeys(denied[:_MOST_DENIED]))
    more = len(denied) - _MOST_DENIED
    return f"{shown} and {more} more" if more > 0 else shown


def _word(word: str) -> str:
    """A word of a command line for the record; a prompt in it would say everything twice."""
    most = 200
    short = word if len(word) <= most else f"{word[:most]}…"
    return short if short.isprintable() and " " not in short else repr(short)
