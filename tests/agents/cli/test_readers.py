"""What twelve CLIs print is understood, and nothing they could print breaks a reader.

The samples are the output of real runs; the hostile ones are made from them here.
"""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from agentcanvas.agents.cli.heard import Heard
from agentcanvas.agents.cli.streams import LONGEST_LINE, Lines
from agentcanvas.app.clis import CLIS, adapter_of
from agentcanvas.protocol.records import (
    ChangeStatus,
    FailureClass,
    FileChangeEvent,
    RawEvent,
    RetryEvent,
    ToolCallEvent,
    ToolResultEvent,
)
from agentcanvas.sandbox.output import Output
from agentcanvas.sandbox.process import Line, Source
from tests.agents.conftest import Events

SAMPLES = Path(__file__).parent / "samples"
STREAMS = sorted(p for p in SAMPLES.rglob("*") if p.is_file() and ".stderr" not in p.name)
NOW_MS = 1_794_800_000_000


class Heard1(NamedTuple):
    """One stream, heard to its end."""

    heard: Heard
    events: Events


def cli_of(path: Path) -> str:
    return path.name.partition(".")[0]


def hear(cli: str, out: Iterable[str], err: Iterable[str] = ()) -> Heard1:
    events = Events()
    heard = Heard(events, "/repo", NOW_MS)
    lines = Lines(adapter_of(cli).reader(heard))
    for text in out:
        lines(Line(Source.STDOUT, text))
    for text in err:
        lines(Line(Source.STDERR, text))
    lines.close()
    return Heard1(heard, events)


def lines_of(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


def sample(name: str) -> Heard1:
    (path,) = [each for each in STREAMS if each.stem == name]
    beside = path.with_name(f"{name}.stderr.txt")
    return hear(cli_of(path), lines_of(path), lines_of(beside) if beside.exists() else ())


# --- what they say ------------------------------------------------------------------------------

WITH_TOOLS = sorted(set(CLIS) - {"agy", "aider"})


@pytest.mark.req("V1", "V2")
@pytest.mark.parametrize("cli", WITH_TOOLS)
def test_a_whole_run_is_understood(cli: str) -> None:
    heard, events = sample(cli)
    assert (heard.ended, heard.failure, heard.unread) == (True, None, 0)
    assert heard.answer == "STUB DONE steps=4 prior=0."
    changes = {event.path: event.status for event in events.of(FileChangeEvent)}
    assert changes == {"hello.txt": ChangeStatus.ADDED, "README.md": ChangeStatus.MODIFIED}
    calls = [event.call_id for event in events.of(ToolCallEvent)]
    results = [event.call_id for event in events.of(ToolResultEvent)]
    # Codex tells its patches as changes of files alone.
    assert calls == results
    assert len(calls) == (2 if cli == "codex" else 4)


@pytest.mark.parametrize("cli", sorted(set(WITH_TOOLS) - {"copilot", "kimi"}))
def test_tokens_are_counted_once(cli: str) -> None:
    usage = sample(cli).heard.usage
    assert (usage.input_tokens, usage.output_tokens) == (1_500, 150)


@pytest.mark.parametrize("cli", sorted(set(WITH_TOOLS) - {"cline", "goose"}))
def test_the_session_has_its_name(cli: str) -> None:
    assert sample(cli).heard.session


@pytest.mark.parametrize("cli", ["codex", "opencode", "copilot", "goose"])
def test_the_exit_code_of_a_command_is_known_where_it_is_told(cli: str) -> None:
    codes = [event.exit_code for event in sample(cli).events.of(ToolResultEvent)]
    assert codes[-1] == 0


def test_only_claude_says_what_it_has_cost() -> None:
    assert sample("claude").heard.usage.cost == pytest.approx(0.0067575)
    for cli in set(WITH_TOOLS) - {"claude"}:
        assert sample(cli).heard.usage.cost is UNSET


def test_aider_tells_its_answer_its_files_and_its_tokens() -> None:
    heard, events = sample("aider")
    assert heard.ended
    assert heard.answer.startswith("README.md\nHere is the change.")
    assert heard.answer.endswith("STUB DONE steps=2 prior=0.")
    assert [event.path for event in events.of(FileChangeEvent)] == ["hello.txt", "README.md"]
    assert (heard.usage.input_tokens, heard.usage.output_tokens) == (100, 10)


@pytest.mark.parametrize("name", ["claude.partial", "qwen.partial"])
def test_live_pieces_of_text_are_not_told_twice(name: str) -> None:
    heard, events = sample(name)
    assert heard.answer == "STUB DONE steps=1 prior=0."
    assert heard.unread == 0
    assert len(events.of(ToolCallEvent)) == 1


# --- how they fail ------------------------------------------------------------------------------

UNTOLD = {"cline.e500": FailureClass.UNKNOWN}
"""Its words are the server's own and name nothing."""


@pytest.mark.parametrize("name", [path.stem for path in STREAMS if ".e401" in path.name])
def test_a_wrong_key_is_told_as_that(name: str) -> None:
    assert sample(name).heard.failure is FailureClass.AUTH


@pytest.mark.parametrize("name", [path.stem for path in STREAMS if ".e500" in path.name])
def test_an_error_of_the_service_is_told_as_that(name: str) -> None:
    assert sample(name).heard.failure is UNTOLD.get(name, FailureClass.SERVER)


@pytest.mark.parametrize(
    ("name", "retries"), [("claude.retry-then-ok", 2), ("codex.retry-then-ok", 1)]
)
def test_what_went_well_at_last_went_well(name: str, retries: int) -> None:
    heard, events = sample(name)
    assert (heard.ended, heard.failure) == (True, None)
    assert len(events.of(RetryEvent)) == retries


@pytest.mark.parametrize("cli", ["claude", "aider", "kimi", "pi"])
def test_retries_are_shown_with_their_pauses(cli: str) -> None:
    (first, *_) = sample(f"{cli}.e500").events.of(RetryEvent)
    assert first.attempt == 1
    assert first.wait_ms > 0


@pytest.mark.parametrize("name", [path.stem for path in STREAMS if ".sigint" in path.name])
def test_an_interrupted_run_did_not_end_well(name: str) -> None:
    heard = sample(name).heard
    assert not heard.ended or heard.failure is not None


def test_a_banner_and_words_glued_to_the_stream_are_kept() -> None:
    heard, events = sample("goose.sigint")
    kept = "\n".join(event.line for event in events.of(RawEvent))
    assert "goose is ready" in kept
    assert "what would you like me to do?" in kept
    assert heard.failure is FailureClass.CANCELLED


# --- what they might say ------------------------------------------------------------------------

ODD = [
    "",
    "}{",
    "null",
    "[]",
    '{"type":null}',
    '{"type":"something.new","data":{"a":[1,2,{"b":null}]}}',
    '{"type":"result"}',
    '{"type":"assistant","message":"hm"}',
    '{"type":"message","message":{"content":[1,null,{"type":"text"}]}}',
    '{"type":"item.completed","item":[]}',
    '{"role":"assistant","tool_calls":[{"function":{"arguments":"{{{"}}]}',
    '{"type":"tool_use","part":{"state":"x"}}',
    "[" * 5_000,
    '{"a":' * 3_000 + "1" + "}" * 3_000,
    "\ud800 \x00 \x1b[31m",
    '{"type":"result","usage":{"input_tokens":-5,"output_tokens":1e999}}',
]


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_stream_among_junk_means_the_same(path: Path) -> None:
    lines = lines_of(path)
    plain = hear(cli_of(path), lines)
    unknown = ['{"type":"brand_new_event","x":1}', "~~ noise ~~", "{broken"]
    mixed = hear(cli_of(path), chain.from_iterable([line, *unknown] for line in lines))
    if cli_of(path) != "aider":  # all of its output is words
        assert mixed.heard.answer == plain.heard.answer
        assert mixed.heard.unread == plain.heard.unread + 3 * len(lines)
    assert (mixed.heard.ended, mixed.heard.failure) == (plain.heard.ended, plain.heard.failure)
    assert mixed.heard.usage == plain.heard.usage


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_stream_may_break_off_anywhere(path: Path) -> None:
    whole = path.read_text("utf-8")
    for part in range(8):
        cut = whole[: len(whole) * part // 8]
        heard = hear(cli_of(path), cut.splitlines()).heard
        if cli_of(path) not in {"aider", "copilot", "kimi", "goose"}:
            assert not heard.ended


@pytest.mark.parametrize("cli", CLIS)
def test_odd_lines_never_raise(cli: str) -> None:
    hear(cli, ODD, ODD)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)


def _words() -> list[Any]:
    """The objects of all samples, to be mutated."""
    found: list[Any] = []
    for path in STREAMS:
        if path.suffix == ".jsonl":
            rows = [line for line in lines_of(path) if line.startswith("{")]
            found += [json.loads(row) for row in rows[:6] + rows[-3:]]
    return found


OBJECTS = _words()


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A real object with something else somewhere in it."""
    value = json.loads(json.dumps(draw(st.sampled_from(OBJECTS))))
    place = value
    for _ in range(draw(st.integers(0, 4))):
        inner = place.values() if isinstance(place, dict) else place
        deeper = [each for each in inner if isinstance(each, dict | list) and each]
        if not deeper:
            break
        place = draw(st.sampled_from(deeper))
    key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
    place[key] = draw(JSON)
    return json.dumps(value)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_line_makes_a_reader_raise(data: st.DataObject) -> None:
    lines = data.draw(st.lists(mutated() | st.text(max_size=60), max_size=6))
    for cli in CLIS:
        hear(cli, lines, lines[:1])


@pytest.mark.parametrize("cli", ["claude", "aider", "goose"])
def test_a_line_of_fifty_megabytes_is_counted_and_memory_stays_bounded(cli: str) -> None:
    head = b'{"type":"assistant","message":{"content":[{"type":"text","text":"'
    piece = b"x" * (1 << 20)
    events = Events()
    heard = Heard(events, "/repo")
    lines = Lines(adapter_of(cli).reader(heard))
    output = Output(256 << 20)
    tracemalloc.start()
    try:
        for data in chain([head], (piece for _ in range(50)), [b'"}]}}\n{"type":"x"}\n']):
            for line in output.feed(Source.STDOUT, data):
                lines(line)
        lines.close()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * LONGEST_LINE
    (told, *_) = [event.line for event in events.of(RawEvent) if "not read" in event.line]
    assert "52,428,8" in told
    assert len(told) < 10_000
