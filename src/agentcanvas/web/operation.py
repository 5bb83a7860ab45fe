"""A typed route: what a request brings and what an answer holds are read from a signature (D39).

A handler names what it wants: ``path``, ``query`` and ``headers`` are text to be converted,
``body`` is JSON, or as it came where the handler wants ``bytes``; who reads it piece by piece takes
the ``request`` instead. Whatever does not fit is refused before the handler runs, naming the field.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Any, get_type_hints

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentcanvas.errors import ProtocolError, ValidationError
from agentcanvas.protocol.scan import MAX_BYTES, prescan, too_large

Handler = Callable[..., Awaitable[Any]]

JSON = "application/json"
_TEXT_PARTS: dict[str, Callable[[Request], dict[str, str]]] = {
    "path": lambda request: dict(request.path_params),
    "query": lambda request: dict(request.query_params),
    "headers": lambda request: dict(request.headers),
}
_BODY = "body"
_REQUEST = "request"
_PLACE = re.compile(r"^(?P<wrong>.*?)(?: - at `\$(?P<place>.*)`)?$", re.DOTALL)


class Described(msgspec.Struct, frozen=True):
    """What an operation takes and gives, for its description (``openapi``)."""

    method: str
    path: str
    group: str
    name: str
    about: str
    parts: dict[str, Any]
    answer: Any
    status: int


class Operation(Route):
    """A route that can be described."""

    described: Described


def operation(
    method: str,
    path: str,
    handler: Handler,
    *,
    status: int = 200,
    largest: int = MAX_BYTES,
    let_in: Callable[[Any, Any], object] | None = None,
) -> Operation:
    """The route that calls a handler; None is answered with 204, a ``Response`` as it is.

    A body of more than ``largest`` bytes is not read, and none of whom ``let_in`` refuses by query
    and headers: what is read is held in memory.
    """
    hints = get_type_hints(handler)
    names = inspect.signature(handler).parameters
    wanted = {name: hints[name] for name in names}
    parts = {name: get_type_hints(handler, include_extras=True)[name] for name in names}
    body_type = wanted.pop(_BODY, None)
    takes_request = wanted.pop(_REQUEST, None) is not None
    decoder = None if body_type in (None, bytes) else msgspec.json.Decoder(body_type)

    async def endpoint(request: Request) -> Response:
        parts: dict[str, Any] = {
            name: converted(_TEXT_PARTS[name](request), kind, name) for name, kind in wanted.items()
        }
        if let_in is not None:
            let_in(parts["query"], parts["headers"])
        if body_type is not None:
            body = await read_body(request, largest)
            parts[_BODY] = body if decoder is None else _decoded(body, decoder)
        if takes_request:
            parts[_REQUEST] = request
        return _answer(await handler(**parts), status)

    name = getattr(handler, "__name__", path)
    route = Operation(path, endpoint, methods=[method], name=name)
    about = inspect.getdoc(handler) or ""
    answer = hints.get("return")
    group = type(getattr(handler, "__self__", None)).__name__.removesuffix("Api").lower()
    route.described = Described(method, path, group or "runs", name, about, parts, answer, status)
    return route


def _answer(value: object, status: int) -> Response:
    if isinstance(value, Response):
        return value
    if value is None:
        return Response(status_code=204)
    return Response(msgspec.json.encode(value), status_code=status, media_type=JSON)


async def read_body(request: Request, largest: int = MAX_BYTES) -> bytes:
    """The body, or a refusal before more of it is read than is allowed."""
    announced = request.headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > largest:
        raise too_large(int(announced))
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > largest:
            raise too_large(len(body))
    return bytes(body)


def _decoded(body: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
    prescan(body)
    try:
        return decoder.decode(body.strip() or b"{}")
    except msgspec.ValidationError as error:
        raise _breach(error, _BODY) from None
    except msgspec.DecodeError as error:
        raise ProtocolError(f"The body is not JSON: {error}.") from None


def converted(values: dict[str, str], kind: Any, part: str) -> Any:
    """Text from a part of a request as what is wanted of it, or a refusal naming the field."""
    try:
        return msgspec.convert(values, type=kind, strict=False)
    except msgspec.ValidationError as error:
        raise _breach(error, part) from None


def _breach(error: msgspec.ValidationError, part: str) -> ValidationError:
    match = _PLACE.match(str(error))
    assert match is not None, "the pattern fits any text"
    place = (match["place"] or "").removeprefix(".")
    where = f"The field {place} of the {part}" if place else f"The {part}"
    return ValidationError(f"{where} does not fit: {match['wrong']}.")
