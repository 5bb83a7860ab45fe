"""A typed route: what a request brings and what an answer holds are read from a signature (D39).

A handler names what it wants: ``path``, ``query`` and ``headers`` are text to be converted,
``body`` is JSON. Whatever does not fit is refused before the handler runs, naming the field.
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
_PLACE = re.compile(r"^(?P<wrong>.*?)(?: - at `\$(?P<place>.*)`)?$", re.DOTALL)


def operation(method: str, path: str, handler: Handler, *, status: int = 200) -> Route:
    """The route that calls a handler; None is answered with 204, a ``Response`` as it is."""
    hints = get_type_hints(handler)
    wanted = {name: hints[name] for name in inspect.signature(handler).parameters}
    body_decoder = msgspec.json.Decoder(wanted.pop(_BODY)) if _BODY in wanted else None

    async def endpoint(request: Request) -> Response:
        parts: dict[str, Any] = {
            name: converted(_TEXT_PARTS[name](request), kind, name) for name, kind in wanted.items()
        }
        if body_decoder is not None:
            parts[_BODY] = _decoded(await read_body(request), body_decoder)
        return _answer(await handler(**parts), status)

    return Route(path, endpoint, methods=[method], name=getattr(handler, "__name__", path))


def _answer(value: object, status: int) -> Response:
    if isinstance(value, Response):
        return value
    if value is None:
        return Response(status_code=204)
    return Response(msgspec.json.encode(value), status_code=status, media_type=JSON)


async def read_body(request: Request) -> bytes:
    """The body, or a refusal before more of it is read than is allowed."""
    announced = request.headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > MAX_BYTES:
        raise too_large(int(announced))
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BYTES:
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
