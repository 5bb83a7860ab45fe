"""Tools that an agent is offered in the middle of its turn: what each takes, and how it is used.

A tool is a form with a docstring and a coroutine. Who offers them, to a model or over MCP, is not
known here; nor is what they do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from agentcanvas.errors import AgentCanvasError


class Tool(Struct, frozen=True):
    """Something an agent may use; ``parameters`` is a JSON Schema."""

    name: str
    description: str
    parameters: dict[str, Any]


class Form(Struct, frozen=True, kw_only=True):
    """What a tool takes. Unknown fields are let go: models add some, and mean no harm."""


class Used(Struct, frozen=True):
    """What a tool gave back; ``exit_code`` where it was a command."""

    output: str
    failed: bool = False
    exit_code: int | None = None


Act = Callable[[Any], Awaitable[Used]]


class Tools:
    """Some tools by their names; the docstring of a form is what the agent reads of it."""

    def __init__(self, able: Mapping[str, tuple[type[Form], Act]]) -> None:
        self._able = dict(able)

    def __add__(self, more: Tools) -> Tools:
        """Both; of two with one name the first is kept."""
        return Tools({**more._able, **self._able})

    @property
    def offered(self) -> tuple[Tool, ...]:
        """What the agent is told of them."""
        return tuple(
            Tool(name, str(form.__doc__).partition("\n")[0], _schema(form))
            for name, (form, _) in self._able.items()
        )

    async def use(self, name: str, arguments: str | bytes) -> Used:
        """Do what was asked for; whatever is wrong with it goes back as a sentence."""
        if name not in self._able:
            return Used(f"There is no tool {name}; use {', '.join(self._able)}.", failed=True)
        form, act = self._able[name]
        try:
            given = msgspec.json.decode(arguments or "{}", type=form)
            return await act(given)
        except msgspec.MsgspecError as wrong:
            return Used(f"The arguments of {name} cannot be used: {wrong}.", failed=True)
        except (AgentCanvasError, OSError, UnicodeError) as error:
            return Used(f"{name} failed: {error}".rstrip(".") + ".", failed=True)


def _schema(form: type[Form]) -> dict[str, Any]:
    """The form's own schema; some readers do not follow a reference at the top."""
    _, schemas = msgspec.json.schema_components([form])
    schema: dict[str, Any] = schemas[form.__name__]
    return {name: schema[name] for name in ("type", "properties", "required") if name in schema}
