"""One turn of a model: ask it, do what it asks for, ask again, until it has said its last word."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
from msgspec import UNSET, Struct

from agentcanvas.agents.confined import Environment
from agentcanvas.agents.runtime import UNSTAMPED, Emit, Image, Turn, TurnResult, answered, failed
from agentcanvas.agents.runtimes.model.conversation import (
    Done,
    Entry,
    Picture,
    Reply,
    Said,
    keep,
    recall,
)
from agentcanvas.agents.runtimes.model.endpoint import (
    Address,
    CallFailed,
    Endpoint,
    OpenEndpoint,
    Request,
    open_endpoint,
)
from agentcanvas.agents.runtimes.model.options import Api, ModelOptions
from agentcanvas.agents.runtimes.model.speech import Speech
from agentcanvas.agents.runtimes.model.toolbox import Toolbox, shortened
from agentcanvas.agents.tools import Tools, Used
from agentcanvas.clock import Clock
from agentcanvas.errors import FlowError
from agentcanvas.protocol.ids import new_id
from agentcanvas.protocol.records import (
    FailureClass,
    RetryEvent,
    SessionEvent,
    ToolCallEvent,
    ToolResultEvent,
    Usage,
    UsageEvent,
)
from agentcanvas.sandbox.confine import Confinement

SYSTEM = (
    "You work on the files of a repository through the tools you are given. Look before you "
    "change something, keep changes small, run the tests. Be direct, technical and brief; state "
    "failures and blockers; do not guess: what you cannot check becomes a question."
)
_LONGEST_WAIT_S = 60.0
"""Who is told to wait longer is not waited for within the turn."""
_FIRST_PAUSE_S = 1.0
_LARGEST_IMAGE = 20 * 1024 * 1024


Offer = Callable[[Turn], AbstractAsyncContextManager[Tools]]
"""Gives the tools that a turn gets beside those for its files."""


@asynccontextmanager
async def _nothing(turn: Turn) -> AsyncIterator[Tools]:
    del turn
    yield Tools({})


class _Model(Struct, frozen=True):
    """What stays the same from turn to turn."""

    name: str
    api: Api
    options: ModelOptions
    confinement: Confinement
    clock: Clock


class ModelRuntime:
    """Calls one model; ``key_env`` is the name of the variable that holds its key."""

    def __init__(
        self,
        model: str,
        confinement: Confinement,
        clock: Clock,
        *,
        url: str | None = None,
        key_env: str | None = None,
        options: ModelOptions = ModelOptions(),  # noqa: B008  # frozen
        environ: Mapping[str, str] | None = None,
        open_endpoint: OpenEndpoint = open_endpoint,
        offer: Offer | None = None,
    ) -> None:
        api = options.api_of(model, url)
        self._model = _Model(model, api, options, confinement, clock)
        self._url = url
        self._key_env = key_env or api.key_env
        self._environ = os.environ if environ is None else environ
        self._open = open_endpoint
        self._offer = offer or _nothing

    async def run(self, turn: Turn, emit: Emit) -> TurnResult:
        """Work on one turn until the model is done or may go no further."""
        key = self._environ.get(self._key_env, "")
        if not key:
            return failed(
                f"{turn.agent_id} has no key: set {self._key_env}, or name another variable with "
                "keyEnv.",
                FailureClass.AUTH,
            )
        url = self._url or self._environ.get(self._model.api.url_env) or None
        try:
            endpoint = self._open(self._model.api, Address(url=url, key=key))
        except FlowError as missing:
            return failed(str(missing), FailureClass.CRASH)
        secrets = Environment({self._key_env: key})
        try:
            async with self._offer(turn) as offered:
                tools = self._toolbox(turn, emit) + offered
                working = _Working(self._model, turn, emit, endpoint, secrets=secrets, tools=tools)
                return await working.work()
        finally:
            with anyio.CancelScope(shield=True):
                await endpoint.close()

    def _toolbox(self, turn: Turn, emit: Emit) -> Tools:
        if turn.place is None:
            return Tools({})
        model = self._model
        return Toolbox(turn.place, model.confinement, model.clock, emit).tools


class _Working:
    """One turn under way."""

    def __init__(
        self,
        model: _Model,
        turn: Turn,
        emit: Emit,
        endpoint: Endpoint,
        *,
        secrets: Environment,
        tools: Tools,
    ) -> None:
        self._model = model
        self._options = model.options
        self._clock = model.clock
        self._turn = turn
        self._emit = emit
        self._endpoint = endpoint
        self._secrets = secrets
        self._tools = tools
        self._session = turn.session_id or new_id()
        self._entries: list[Entry] = []
        self._usage = Usage()
        self._text = ""

    async def work(self) -> TurnResult:
        try:
            self._begin()
            return await self._converse()
        except CallFailed as end:
            return self._failed(end)
        except OSError as wrong:  # an image that is gone, a full disk
            return failed(f"The turn could not be prepared: {wrong}.", FailureClass.CRASH)

    def _begin(self) -> None:
        path = self._path
        if path is not None and self._turn.session_id is not None:
            self._entries = recall(path, self._model.api)
        pictures = tuple(_picture(image) for image in self._turn.images)
        self._entries.append(Said(self._turn.prompt, pictures))
        session = SessionEvent(session_id=self._session, model=self._model.name, **UNSTAMPED)
        self._emit(session)

    async def _converse(self) -> TurnResult:
        for _ in range(self._options.max_steps):
            reply = await self._ask()
            self._entries.append(reply)
            self._count(reply.usage)
            self._text = reply.text or self._text
            if not reply.calls:
                self._keep()
                if reply.cut_off:
                    return self._too_long("its answer was cut off at the limit of output tokens")
                return answered(self._turn, reply.text, usage=self._usage, session_id=self._session)
            for call in reply.calls:
                done = await self._use(call.id, call.name, call.arguments)
                self._entries.append(Done(call.id, done.output, done.failed))
            self._keep()
        return self._too_long(f"it asked for more after {self._options.max_steps} steps")

    async def _ask(self) -> Reply:
        for attempt in range(1, self._options.attempts + 1):
            try:
                return await self._ask_once()
            except CallFailed as failure:
                wait = self._pause(attempt, failure)
                if wait is None:
                    raise
                again = RetryEvent(
                    attempt=attempt,
                    reason=self._secrets.redacted(str(failure)),
                    wait_ms=round(wait * 1000),
                    **UNSTAMPED,
                )
                self._emit(again)
                await self._clock.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    async def _ask_once(self) -> Reply:
        request = Request(
            model=self._model.name,
            entries=tuple(self._entries),
            system=self._options.system or (SYSTEM if self._tools.offered else ""),
            tools=self._tools.offered,
            max_output_tokens=self._options.max_output_tokens,
            temperature=self._options.temperature,
        )
        speech = Speech(self._emit, self._secrets)
        self._clock.hold()  # an endpoint takes real time; a virtual clock must not run ahead
        try:
            return await self._endpoint.reply(request, speech)
        finally:
            self._clock.release()
            speech.close()

    def _pause(self, attempt: int, failure: CallFailed) -> float | None:
        """How long to wait before the next attempt; None if there is none."""
        wait = failure.wait_s
        if wait is None:
            wait = _FIRST_PAUSE_S * 2 ** (attempt - 1)
        hopeless = not failure.again or attempt == self._options.attempts
        return None if hopeless or wait > _LONGEST_WAIT_S else wait

    async def _use(self, call_id: str, name: str, arguments: str) -> Used:
        given = self._secrets.redacted(arguments)
        call = ToolCallEvent(name=name, call_id=call_id, input=_as_json(given), **UNSTAMPED)
        self._emit(call)
        done = await self._tools.use(name, arguments)
        done = msgspec.structs.replace(done, output=shortened(done.output))
        result = ToolResultEvent(
            output=self._secrets.redacted(done.output),
            call_id=call_id,
            exit_code=UNSET if done.exit_code is None else done.exit_code,
            failed=done.failed,
            **UNSTAMPED,
        )
        self._emit(result)
        return done

    def _count(self, usage: Usage) -> None:
        self._usage = _sum(self._usage, usage)
        self._emit(UsageEvent(usage=self._usage, **UNSTAMPED))

    @property
    def _path(self) -> Path | None:
        """Where the conversation is kept: out of the agent's reach, if the turn has a place."""
        folder = self._turn.sessions
        if folder is None or not self._session.replace("-", "").isalnum():
            return None
        return folder / f"{self._session}.json"

    def _keep(self) -> None:
        if (path := self._path) is not None:
            keep(path, self._model.api, self._entries)

    def _failed(self, end: CallFailed) -> TurnResult:
        result = failed(
            self._secrets.redacted(str(end)),
            end.error_class,
            text=self._text,
            usage=self._usage,
            session_id=self._session,
        )
        if end.error_class is FailureClass.RATE_LIMIT and end.wait_s is not None:
            until = self._clock.now_ms() + round(end.wait_s * 1000)
            result = msgspec.structs.replace(result, retry_at_ms=until)
        return result

    def _too_long(self, what: str) -> TurnResult:
        return failed(
            f"{self._turn.agent_id} was not done: {what}.",
            FailureClass.TURN_LIMIT,
            text=self._text,
            usage=self._usage,
            session_id=self._session,
        )


def _picture(image: Image) -> Picture:
    size = image.path.stat().st_size
    if size > _LARGEST_IMAGE:
        raise CallFailed(
            FailureClass.DENIED,
            f"The image {image.path.name} has {size:,} bytes, too many to show to a model; "
            "hand in a smaller one.",
        )
    return Picture(image.media, base64.b64encode(image.path.read_bytes()).decode())


def _as_json(arguments: str) -> msgspec.Raw:
    """What the model wrote, if it is JSON; else as a JSON text."""
    encoded = arguments.encode()
    try:
        msgspec.json.decode(encoded)
    except (msgspec.MsgspecError, RecursionError):
        encoded = msgspec.json.encode(arguments)
    return msgspec.Raw(encoded)


def _sum(known: Usage, more: Usage) -> Usage:
    """Tokens added up, call by call; the model is the latest named."""
    fields: dict[str, Any] = {}
    for name in ("input_tokens", "output_tokens", "cache_read", "cache_write"):
        said = [n for n in (getattr(known, name), getattr(more, name)) if n is not UNSET]
        fields[name] = sum(said) if said else UNSET
    fields["model"] = more.model if more.model is not UNSET else known.model
    return Usage(**fields)
