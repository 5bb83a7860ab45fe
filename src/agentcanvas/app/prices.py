"""What tokens cost, where nobody says: a dated table that comes along, and the user's own."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from agentcanvas.app.settings.load import user_file
from agentcanvas.errors import SettingsError
from agentcanvas.protocol.records import Usage

NAME = "prices.toml"
_MILLION = 1_000_000
_Dollars = Annotated[float, Meta(ge=0)]


class Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars a million tokens; what the cache costs is as the input if nothing else is said."""

    input: _Dollars
    output: _Dollars
    cache_read: _Dollars | None = None
    cache_write: _Dollars | None = None

    def of(self, usage: Usage) -> float:
        """What a turn has cost; the input includes what came from the cache."""
        cached, written = usage.cache_read or 0, usage.cache_write or 0
        fresh = max(0, (usage.input_tokens or 0) - cached)
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        total = fresh * self.input + cached * read + written * write
        return (total + (usage.output_tokens or 0) * self.output) / _MILLION


class PriceTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices by model; ``as_of`` is the day they were looked up."""

    as_of: str = ""
    models: dict[str, Price] = {}

    def price_of(self, model: str) -> Price | None:
        """The price of a model by its name, or by the longest name that it begins with."""
        name = model.rpartition("/")[2].lower()
        fitting = [
            known
            for known in self.models
            if name == known or name.startswith((f"{known}-", f"{known}@"))
        ]
        return self.models[max(fitting, key=len)] if fitting else None

    def estimate(self, usage: Usage) -> float | None:
        """What a turn has probably cost; None where the model or its tokens are not known."""
        if not usage.model or (not usage.input_tokens and not usage.output_tokens):
            return None
        price = self.price_of(usage.model)
        return None if price is None else round(price.of(usage), 6)


def load_prices(environ: Mapping[str, str]) -> PriceTable:
    """The table that comes along, with the user's own prices over it."""
    packaged = _packaged()
    settings = user_file(environ)
    if settings is None or not (path := settings.with_name(NAME)).is_file():
        return packaged
    own = _read(path)
    return PriceTable(as_of=own.as_of or packaged.as_of, models={**packaged.models, **own.models})


@cache
def _packaged() -> PriceTable:
    return _decoded(tomllib.loads((files("agentcanvas.app") / NAME).read_text("utf-8")))


def _read(path: Path) -> PriceTable:
    try:
        return _decoded(tomllib.loads(path.read_text("utf-8")))
    except (OSError, UnicodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as wrong:
        raise SettingsError(
            f"{path} cannot be read: {wrong}. Write [models] and lines such as "
            '"my-model" = { input = 1.0, output = 5.0 }, in US dollars a million tokens.'
        ) from wrong


def _decoded(table: dict[str, Any]) -> PriceTable:
    return msgspec.convert(table, PriceTable)
