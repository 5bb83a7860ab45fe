"""Writes the page's types from the code that makes its data: ``ui/src/api/types.ts``.

``python -m tools.ui_types`` writes the file, with ``--check`` it says whether the file is what the
code would write. The types are read with msgspec's own inspection and not from a JSON Schema,
because a schema cannot hold the default of a raw field.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from enum import Enum
from inspect import cleandoc
from pathlib import Path

from msgspec import inspect as shape

from agentcanvas.protocol.person import PersonAnswer
from agentcanvas.runs.events import RunEvent
from agentcanvas.runs.office import RunOrder
from agentcanvas.runs.shown import ShownProposal
from agentcanvas.runs.state import TaskStatus
from agentcanvas.web import planning, views

TARGET = Path(__file__).parent.parent / "ui" / "src" / "api" / "types.ts"

PLAIN: dict[type, str] = {
    shape.StrType: "string",
    shape.IntType: "number",
    shape.FloatType: "number",
    shape.BoolType: "boolean",
    shape.NoneType: "null",
    shape.RawType: "unknown",
    shape.AnyType: "unknown",
}

HEAD = """\
// Written by `make schema` from the Python types; changes belong there.
"""

TAIL = """\
/** An event with its place in the one order of everything, and its time in ms since the epoch. */
export type Recorded = RunEvent & {
  readonly seq: number;
  readonly ts: number;
  readonly runId: string;
};

/**
 * A run so far. The live feed goes on after `head`, which is `<epoch>-<seq>`; the last events may
 * be later than that already.
 */
export interface Snapshot {
  readonly head: string;
  readonly events: readonly Recorded[];
}
"""


OTHERS = (
    views.RunsView,
    views.ServerView,
    views.AsksView,
    views.TranscriptView,
    views.WindowView,
    views.StartedView,
    views.StoppedView,
    planning.FlowsView,
    planning.PlannedRun,
    planning.CleanUp,
    planning.Budget,
    views.UndoneView,
    RunOrder,
    PersonAnswer,
    ShownProposal,
    TaskStatus,
)
"""What the page asks for or sends, besides events; a new one gets a line here."""


class NotExpressible(Exception):
    """A type the page's language has no word for here; the sentence says which."""


def module() -> str:
    """The whole file."""
    events, *others = shape.multi_type_info([RunEvent, *OTHERS])
    assert isinstance(events, shape.UnionType)
    kinds = list(_named_types((events, *others)))
    _refuse_homonyms([kind.cls for kind in kinds])
    union = "\n".join(f"  | {_word(kind)}" for kind in events.types)
    declarations = [_declaration(kind) for kind in kinds]
    return "\n".join([HEAD, *declarations, f"export type RunEvent =\n{union};\n", TAIL])


def _refuse_homonyms(classes: Sequence[type]) -> None:
    known: dict[str, type] = {}
    for cls in classes:
        other = known.setdefault(cls.__name__, cls)
        if other is not cls:
            raise NotExpressible(
                f"{other.__module__} and {cls.__module__} both have a {cls.__name__}: rename one"
            )


def _named_types(roots: Sequence[shape.Type]) -> Iterator[shape.StructType | shape.EnumType]:
    """Every struct and enum within reach, once, each after what it is made of."""
    seen: set[type] = set()

    def walk(kind: shape.Type) -> Iterator[shape.StructType | shape.EnumType]:
        if isinstance(kind, shape.StructType | shape.EnumType):
            if kind.cls in seen:
                return
            seen.add(kind.cls)
        for part in _parts(kind):
            yield from walk(part)
        if isinstance(kind, shape.StructType | shape.EnumType):
            yield kind

    for root in roots:
        yield from walk(root)


def _parts(kind: shape.Type) -> Sequence[shape.Type]:
    match kind:
        case shape.StructType(fields=fields):
            return [field.type for field in fields]
        case shape.UnionType(types=types):
            return types
        case shape.VarTupleType(item_type=item):
            return [item]
        case shape.DictType(key_type=key, value_type=value):
            return [key, value]
        case shape.Metadata(type=inner):
            return [inner]
        case _:
            return []


def _declaration(kind: shape.StructType | shape.EnumType) -> str:
    name = kind.cls.__name__
    comment = _comment(kind.cls)
    if isinstance(kind, shape.EnumType):
        return f"{comment}export type {name} = {_literals(kind.cls)};\n"
    lines = [f'  readonly {kind.tag_field}: "{kind.tag}";'] if kind.tag_field else []
    lines += [
        f"  readonly {field.encode_name}{'' if field.required else '?'}: {_word(field.type)};"
        for field in kind.fields
    ]
    return "\n".join([f"{comment}export interface {name} {{", *lines, "}\n"])


def _comment(cls: type) -> str:
    first = cleandoc(cls.__doc__ or "").partition("\n\n")[0].replace("\n", " ").replace("``", "`")
    return f"/** {first} */\n" if first else ""


def _literals(cls: type[Enum]) -> str:
    return " | ".join(f'"{member.value}"' for member in cls)


def _word(kind: shape.Type) -> str:
    match kind:
        case shape.StructType(cls=cls) | shape.EnumType(cls=cls):
            return cls.__name__
        case shape.Metadata(type=inner):
            return _word(inner)
        case shape.UnionType(types=types):
            return " | ".join(_word(part) for part in types)
        case shape.VarTupleType(item_type=item):
            word = _word(item)
            return f"readonly ({word})[]" if " " in word else f"readonly {word}[]"
        case shape.DictType(value_type=value):
            return f"Readonly<Record<string, {_word(value)}>>"
        case _ if type(kind) in PLAIN:
            return PLAIN[type(kind)]
        case _:
            raise NotExpressible(f"{kind} has no word in TypeScript: teach tools/ui_types.py one")


def main(words: Sequence[str]) -> int:
    """Write the file, or check it."""
    text = module()
    if "--check" not in words:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
        sys.stdout.write("the page's types are up to date\n")
        return 0
    sys.stderr.write("ui/src/api/types.ts is out of date. Write it anew: make schema\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
