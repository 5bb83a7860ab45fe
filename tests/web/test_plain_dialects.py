"""Agents that know their own dialect and nothing else work together, as docs/hub.md says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agentcanvas.hub.office import TokenOrder
from tests.app.hub_process import hub_beside
from tests.web.sockets import TIME, Wire, wire

pytestmark = [pytest.mark.anyio, pytest.mark.req("H1", "M1", "W1", "W2", "W3")]

DIALECTS = ("mac", "spec022", "acp")


class Mac:
    """Knows a task by its id, and a conversation by its correlation id."""

    def ask(self) -> dict[str, Any]:
        head = {"message_id": "m-1", "type": "TASK_REQUEST", "from": "a", "to": "b"}
        payload = {"task_id": "t-1", "task_type": "count_words", "input": "two words"}
        about = {"correlation_id": "c-1"}
        return {**head, "timestamp": TIME, "payload": payload, "metadata": about}

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        thread = asked.get("metadata", {}).get("correlation_id", asked["message_id"])
        done = {"task_id": asked["payload"]["task_id"], "status": "SUCCESS", "output": "2"}
        head = {"message_id": "m-2", "type": "TASK_COMPLETE", "from": "b", "to": asked["from"]}
        payload = {**done, "duration": 1, "completed_at": TIME}
        about = {"correlation_id": thread}
        return {**head, "timestamp": TIME, "payload": payload, "metadata": about}

    def is_answered(self, by: dict[str, Any]) -> bool:
        named = (by["to"], by["payload"]["task_id"], by["metadata"]["correlation_id"])
        return (by["type"], *named) == ("TASK_COMPLETE", "a", "t-1", "c-1")


class Spec022:
    """Knows a task by its id, and a conversation by its correlation id."""

    def _head(self, id_: str, sender: str, to: str, type_: str, thread: str) -> dict[str, Any]:
        names = {"from_agent": sender, "to_agent": to}
        roles = {"a": "architect", "b": "developer"}
        agents = {
            each: {"agent_id": name, "agent_type": roles[name]} for each, name in names.items()
        }
        head = {"message_id": id_, "timestamp": TIME, "sequence_number": 1, **agents}
        return {**head, "message_type": type_, "correlation_id": thread}

    def ask(self) -> dict[str, Any]:
        constraints = {"scope": ["**"], "testing_required": False, "must_not_break": []}
        task: dict[str, Any] = {
            "task_id": "t-1",
            "task_description": "count",
            "acceptance_criteria": ["done"],
        }
        task |= {"context": {"specs": [], "reference_files": []}, "constraints": constraints}
        head = self._head("m-1", "a", "b", "task_assignment", "c-1")
        return {**head, "payload": {"task": task, "priority": "medium"}}

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        changes: dict[str, Any] = {f"files_{what}": [] for what in ("created", "modified")}
        changes["files_deleted"] = []
        review = {"tests_run": True, "tests_passed": True, "type_check_passed": True}
        done = {"task_id": asked["payload"]["task"]["task_id"], "status": "completed"}
        thread = asked.get("correlation_id", asked["message_id"])
        to = asked["from_agent"]["agent_id"]
        head = self._head("m-2", "b", to, "task_completion", thread)
        payload = {**done, "changes": changes, "summary": "2", "self_review": review}
        return {**head, "payload": payload}

    def is_answered(self, by: dict[str, Any]) -> bool:
        named = (by["to_agent"]["agent_id"], by["payload"]["task_id"], by["correlation_id"])
        return (by["message_type"], *named) == ("task_completion", "a", "t-1", "c-1")


class Acp:
    """Knows a command by its id, and nothing else."""

    def ask(self) -> dict[str, Any]:
        head = {"id": "m-1", "timestamp": TIME, "version": "2.0", "from": "a", "to": "b"}
        return {**head, "priority": "low", "action": "ANALYZE", "parameters": {"input": "words"}}

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        head = {"id": "m-2", "commandId": asked["id"], "timestamp": TIME, "version": "2.0"}
        return {**head, "from": "b", "status": "success", "results": {"data": "2"}}

    def is_answered(self, by: dict[str, Any]) -> bool:
        return (by["commandId"], by["status"]) == ("m-1", "success")


PLAIN: dict[str, Mac | Spec022 | Acp] = {"mac": Mac(), "spec022": Spec022(), "acp": Acp()}


@pytest.fixture
async def wires(tmp_path: Path, asker: str, worker: str) -> AsyncIterator[tuple[Wire, Wire]]:
    async with hub_beside(tmp_path) as (info, opened):
        a, b = [(await opened.keeper.new_token(TokenOrder(name=name))).text for name in "ab"]
        async with (
            wire(info.url, "a", a, f"&dialect={asker}") as asking,
            wire(info.url, "b", b, f"&dialect={worker}") as working,
        ):
            yield asking, working


@pytest.mark.parametrize("asker", DIALECTS)
@pytest.mark.parametrize("worker", DIALECTS)
async def test_whoever_asks_finds_the_answer_by_its_own_means(
    wires: tuple[Wire, Wire], asker: str, worker: str
) -> None:
    asking, working = wires
    await asking.say(PLAIN[asker].ask())
    await working.say(PLAIN[worker].answer(await working.hear_message()))
    assert "receipts" in await working.hear()
    assert PLAIN[asker].is_answered(await asking.hear_message())
