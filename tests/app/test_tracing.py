"""Spans of a real run, made from its events."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from agentcanvas.app.office import open_engine
from agentcanvas.app.tracing import ENDPOINTS, advice, traced, why_no_traces
from agentcanvas.flows.check import check
from agentcanvas.flows.document import read_document
from agentcanvas.runs import events as e
from tests.runs.workspaces import order, repository, solo

pytestmark = pytest.mark.anyio

TRACED = "      observability: {traces: true}\n      termination:"


def flow(command: str, *, traces: bool = True) -> str:
    text = solo(command)
    return text.replace("      termination:", TRACED) if traces else text


async def spans_of(root: Path, text: str) -> tuple[ReadableSpan, ...]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    async with open_engine(root) as (engine, store), traced(store, provider.get_tracer("t")):
        run_id = await engine.start(order(text))
        async for _ in engine.events(run_id):
            pass
        if await engine.asks(run_id):
            await engine.stop(run_id)
    return exporter.get_finished_spans()


async def test_an_interaction_its_turns_and_their_messages_are_spans(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"greeting.txt": "hello\n"})
    spans = {span.name: span for span in await spans_of(root, flow("echo hi > greeting.txt"))}
    assert set(spans) == {
        "interaction work",
        "invoke_agent coder",
        "send task.assign",
        "receive task.complete",
    }
    turn, whole = spans["invoke_agent coder"], spans["interaction work"]
    assert turn.parent == whole.get_span_context()
    assert turn.attributes is not None
    assert turn.attributes["gen_ai.agent.name"] == "coder"
    assert spans["send task.assign"].parent == turn.get_span_context()
    assert turn.start_time is not None
    assert turn.end_time is not None
    assert turn.start_time < turn.end_time


async def test_a_turn_that_failed_says_so(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"greeting.txt": "hello\n"})
    spans = await spans_of(root, flow("exit 3"))
    turns = [span for span in spans if span.name == "invoke_agent coder"]
    assert {turn.status.status_code for turn in turns} == {StatusCode.ERROR}
    assert "receive task.fail" in {span.name for span in spans}


async def test_without_traces_there_are_no_spans(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"greeting.txt": "hello\n"})
    assert await spans_of(root, flow("echo hi > greeting.txt", traces=False)) == ()


def test_a_flow_that_asks_for_traces_is_told_what_is_missing() -> None:
    asking = check(read_document(flow("true").encode(), "a.yaml")).sound()
    silent = check(read_document(flow("true", traces=False).encode(), "b.yaml")).sound()
    assert advice(asking, {}) == [f"traces: true sends nothing until {ENDPOINTS[0]} says where"]
    assert advice(silent, {}) == []
    assert why_no_traces({ENDPOINTS[0]: "http://127.0.0.1:4318"}) == ""
    assert e.ConfiguredInteraction("p", "l").traces is False
