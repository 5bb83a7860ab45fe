"""Whatever value exists is written and read back unchanged; whatever is read can be written."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentcanvas.errors import FormError
from agentcanvas.protocol.forms import (
    Handoff,
    StandardMessage,
    StandardResponse,
    TextForm,
    parse,
    problems,
    tidy,
    tidy_line,
    write,
)

pytestmark = pytest.mark.req("T4")

# The bits that make trouble: titles, markers, fences, escapes, the words for nothing and for done,
# and every kind of white space.
STRUCTURE = (
    *("Intent", "Inputs", "Plan", "Actions", "Open Questions", "Assumptions/Inputs", "Tests"),
    *("Next Steps or DONE", "DONE", "done", "None", "n/a", "HANDOFF", "Context:", "Goal: x"),
    *("DoD", "Next:", "ChangedFiles:", "Risks: none", "4. Actions", "1. Intent", "[x]", "<a>"),
    *("- ", "* ", "• ", "1. ", "2. ", "3. ", "4) ", "(2) ", "---", "***", "**", "#", "## "),
    *("\\", "\\\\", "`", "```", "~~~", "```py", ":", ".", "—", "é", "한", "😀"),
    *(" ", "  ", "    ", "\t", "\n", "\n\n", "\r", "\r\n"),
    *("\u00a0", "\u2028", "\x0b", "\x1c", "\x85", "\x00"),
)
BITS = st.sampled_from(STRUCTURE)
ROUGH = st.lists(BITS | st.text(max_size=4), max_size=10).map("".join)
TEXT = ROUGH.map(tidy).filter(bool)
LINE = ROUGH.map(tidy_line).filter(bool)


def several(
    texts: st.SearchStrategy[str], least: int, most: int
) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(texts, min_size=least, max_size=most).map(tuple)


MESSAGES = st.builds(
    StandardMessage,
    intent=LINE,
    inputs=several(TEXT, 0, 3),
    plan=several(TEXT, 3, 7),
    actions=several(TEXT, 0, 3),
    open_questions=several(TEXT, 0, 3),
)
RESPONSES = st.builds(
    StandardResponse,
    intent=LINE,
    inputs=several(TEXT, 0, 3),
    plan=several(TEXT, 1, 5),
    actions=several(TEXT, 0, 3),
    risks=several(TEXT, 0, 3),
    next_steps=several(TEXT, 1, 3),
) | st.builds(
    StandardResponse,
    intent=LINE,
    plan=several(TEXT, 1, 5),
    done_note=st.just("") | TEXT,
)
HANDOFFS = st.builds(
    Handoff,
    context=TEXT,
    goal=TEXT,
    dod=TEXT,
    sandbox_work_dir=LINE,
    proposal_json=LINE,
    changed_files=several(LINE, 1, 4),
    tests=several(TEXT, 0, 3),
    next=several(TEXT, 1, 3),
)
FORMS = MESSAGES | RESPONSES | HANDOFFS
PLAIN = ("a", "b", "c")
QUOTED_PATHS = Handoff(
    context="`x`",
    goal="HANDOFF\nNext: y",
    dod="---",
    sandbox_work_dir="`w`",
    proposal_json="\\`p`",
    changed_files=("`a b`", "None", "\\None", "- a"),
    next=("HANDOFF",),
)


@given(form=FORMS)
@example(form=StandardMessage(intent="1. Intent", plan=("a", "b", "c", "Actions", "Plan: x")))
@example(form=StandardMessage(intent="\\- a", inputs=("None",), plan=("\\None", "\\\\None", "x")))
@example(form=StandardMessage(intent="```", plan=("a\n```\nb", "```", "c\n\n    d")))
@example(form=StandardResponse(intent="x", plan=("a",), next_steps=("DONE", "\\DONE: y")))
@example(form=StandardResponse(intent="x", plan=("a",), done_note="5. Risks\n\n- b"))
@example(form=QUOTED_PATHS)
def test_every_value_is_read_back_as_it_was_written(form: TextForm) -> None:
    assert parse(write(form), type(form)) == form


@given(form=FORMS, before=st.sampled_from(["", "Here it is:\n\n", "- a list\n\n"]))
@example(form=StandardMessage(intent="```", plan=PLAIN), before="")
@example(form=QUOTED_PATHS, before="")
def test_every_value_survives_in_the_middle_of_other_text(form: TextForm, before: str) -> None:
    text = f"{before}```text\n{write(form)}```\nThat was it.\n1. Intent\nHANDOFF\n"
    assert parse(text, type(form)) == form


@given(form=FORMS)
def test_writing_is_stable(form: TextForm) -> None:
    text = write(form)
    assert write(parse(text, type(form))) == text
    assert all(line == line.rstrip() for line in text.split("\n"))


@st.composite
def decorated(draw: st.DrawFn) -> str:
    """A message with headings and entries as wild as models write them."""
    lines: list[str] = []
    for number, title in enumerate(
        ("Intent", "Inputs", "Plan", "Actions", "Open Questions"), start=1
    ):
        opening = draw(st.sampled_from(["", "## ", "**", "### **"]))
        count = draw(st.sampled_from(["", f"{number}. ", f"{number}) "]))
        closing = "**" if opening.endswith("**") else ""
        colon = draw(st.sampled_from(["", ":", " —"]))
        lines.append(f"{opening}{count}{title}{closing}{colon}")
        marker = draw(st.sampled_from(["- ", "* ", "1. ", "  - ", "\t- "]))
        least = {"Intent": 1, "Plan": 3}.get(title, 0)
        most = {"Intent": 1, "Plan": 7}.get(title, 3)
        entries = draw(st.lists(ROUGH.map(tidy_line), min_size=least, max_size=most))
        lines += [f"{marker}{entry}" for entry in entries]
        lines += draw(st.sampled_from([[], [""], ["", "---", ""]]))
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines)


def read_or_refused(text: str, form: type[TextForm]) -> TextForm | FormError:
    try:
        return parse(text, form)
    except FormError as error:
        return error


@given(text=decorated() | st.lists(BITS | st.text(max_size=8), max_size=60).map("".join))
def test_any_text_is_read_or_refused_with_a_part_and_what_is_read_is_stable(text: str) -> None:
    for form in (StandardMessage, StandardResponse, Handoff):
        found = problems(text, form)
        value = read_or_refused(text, form)
        if isinstance(value, FormError):
            assert (value.part, str(value)) in [(each.part, each.sentence) for each in found]
        else:
            assert parse(write(value), form) == value


@given(text=st.text() | ROUGH)
def test_tidy_text_can_always_be_held(text: str) -> None:
    kept = tidy(text)
    assert tidy(kept) == kept
    line = tidy_line(text)
    assert tidy_line(line) == line
    assert "\n" not in line
    if kept:
        StandardMessage(intent=line, inputs=(kept,), plan=PLAIN)


@pytest.mark.parametrize(
    "text",
    [
        "```\n" * 25_000,
        "```py\n" * 25_000,
        "1. Intent\n" * 15_000,
        "1. Intent\nx\n3. Plan " + "1. a " * 50_000,
        "1. Intent\n" + "(" * 500_000,
        "1. Intent\n" + "*" * 500_000,
        "5. Open Questions\n" + "- a\n\n\n" * 20_000,
        "HANDOFF\nNext:\n" + "  - a\n    b\n" * 15_000,
        "HANDOFF\nDoD: " + "no " * 50_000,
        "x" * 1_000_000,
    ],
    ids=lambda text: repr(text[:24]),
)
def test_a_very_long_text_is_answered_all_the_same(text: str) -> None:
    for form in (StandardMessage, StandardResponse, Handoff):
        assert problems(text, form)


def test_a_very_long_value_is_read_back() -> None:
    long = "\n".join(["word " * 2_000 + "end"] * 50)
    form = StandardMessage(intent="x" * 100_000, inputs=(long,) * 3, plan=(long, "b", long))
    assert parse(write(form), StandardMessage) == form
