"""What all parts of a flow are made of: strict frozen values, ids, and two abbreviations."""

from __future__ import annotations

from typing import Annotated, Final, TypeVar

from msgspec import Meta, Struct

Item = TypeVar("Item")

# Two abbreviations that a person may write; ``shape`` reads them and ``schema`` allows them.
ONE: Final = "one_or_many"
SHORT: Final = "shorthand"
OneOrMany = Annotated[
    tuple[Item, ...], Meta(extra={ONE: True}, extra_json_schema={f"x-{ONE}": True})
]

Id = Annotated[str, Meta(min_length=1, max_length=128)]
Glob = Annotated[str, Meta(min_length=1, max_length=1_024)]
Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Milliseconds = Annotated[int, Meta(ge=1, le=7 * 24 * 3_600_000)]


class Part(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all parts of a flow have in common."""
