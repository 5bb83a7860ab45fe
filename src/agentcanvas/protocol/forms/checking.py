"""What the values of a form may hold: the text itself, the counts, and the meaning.

Text and counts are held by every value from the moment it is made, so that whatever exists can be
written and read back unchanged. Meaning (nothing left unfilled, a definition of done that can be
checked) is asked for separately, because a template has the form without the meaning.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentcanvas.protocol.forms.shape import FormProblem, Kind, Part, Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Values = Mapping[str, str | tuple[str, ...]]

_UNFILLED = re.compile(r"\[[^\[\]]*\]|<[^<>]*>|\.{3,}|…|todo\b.{0,3}|tbd\b.{0,3}", re.IGNORECASE)
_UNFILLED_PATH = re.compile(r"<[^<>/]+>|^path/to/")


def tidy(text: str) -> str:
    """Any text as a form can hold it: no carriage returns, no white space at either end of it or at
    the end of a line, nothing that UTF-8 cannot carry. The result may be empty.
    """
    sendable = text.encode("utf-8", "replace").decode("utf-8")
    lines = sendable.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(line.rstrip() for line in lines).strip()


def tidy_line(text: str) -> str:
    """The same on a single line."""
    return " ".join(part for line in tidy(text).split("\n") if (part := line.strip()))


def form_problems(shape: Shape, values: Values) -> Iterator[FormProblem]:
    """Breaches of text and counts, part by part; parts without a value are passed over."""
    for part in shape.parts:
        value = values.get(part.attribute)
        if value is None:
            continue
        if isinstance(value, tuple):
            yield from _count_problems(part, len(value))
        for text in (value,) if isinstance(value, str) else value:
            yield from _text_problems(part, text)
        if note := values.get(part.note):
            yield from _note_problems(part, str(note), has_steps=bool(value))


def meaning_problems(shape: Shape, values: Values) -> Iterator[FormProblem]:
    """Parts that were never filled in, or do not say what they have to say."""
    for part in shape.parts:
        value = values.get(part.attribute, "")
        texts = [text for text in ((value,) if isinstance(value, str) else value) if text]
        unfilled = next((text for text in texts if _is_unfilled(part, text)), None)
        if unfilled is not None:
            yield FormProblem(
                part.title,
                f'"{part.title}" still holds the placeholder {_quote(unfilled)}: give {part.hint}.',
            )
        elif part.judge is not None:
            for text in texts:
                if reason := part.judge(text):
                    yield FormProblem(part.title, f'"{part.title}" {reason}')


def _count_problems(part: Part, count: int) -> Iterator[FormProblem]:
    most = part.at_most
    if count >= part.at_least and (most is None or count <= most):
        return
    entry = "step" if part.kind is Kind.STEPS else "entry"
    entries = "steps" if part.kind is Kind.STEPS else "entries"
    if most is None:
        wanted = f"at least {part.at_least}"
    elif part.at_least == 0:
        wanted = f"at most {most}"
    else:
        wanted = f"{part.at_least} to {most}"
    yield FormProblem(
        part.title,
        f'"{part.title}" has {count} {entry if count == 1 else entries}; give {wanted}: '
        f"{part.hint}.",
    )


def _note_problems(part: Part, note: str, *, has_steps: bool) -> Iterator[FormProblem]:
    yield from _text_problems(part, note)
    if has_steps:
        yield FormProblem(
            part.title,
            f'"{part.title}" says DONE and lists steps: write DONE alone, or only the steps.',
        )


def _text_problems(part: Part, text: str) -> Iterator[FormProblem]:
    if not text:
        yield FormProblem(part.title, f'"{part.title}" is empty: give {part.hint}.')
        return
    if part.kind.is_single_line and "\n" in text:
        yield FormProblem(
            part.title,
            f'"{part.title}" has {text.count(chr(10)) + 1} lines where there must be one: '
            f"{_quote(text)}; give {part.hint}.",
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        yield FormProblem(
            part.title, f'"{part.title}" holds half of a surrogate pair, which cannot be sent.'
        )
        return
    if text != tidy(text):
        yield FormProblem(
            part.title,
            f'"{part.title}" holds white space that would not be read back, in {_quote(text)}: '
            "pass the text through tidy() first.",
        )


def _is_unfilled(part: Part, text: str) -> bool:
    if _UNFILLED.fullmatch(text):
        return True
    return part.kind in (Kind.PATH, Kind.PATHS) and _UNFILLED_PATH.search(text) is not None


def _quote(text: str, length: int = 60) -> str:
    short = text if len(text) <= length else f"{text[: length - 1]}…"
    return f'"{" ".join(short.split())}"'
