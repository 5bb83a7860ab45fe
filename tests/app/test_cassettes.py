"""A run recorded with a real agent and played back without it, files and all."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentcanvas.errors import ValidationError
from agentcanvas.protocol.person import PersonAnswer
from agentcanvas.runs.state import RunState, RunStatus
from tests.runs.workspaces import engine_on, order, repository, solo

SECRET = "s3cr3t-value-1234"
# Sent back once, the agent does it right; a file of the first turn is gone after the second.
AGENT = r"""
printf '%s\n' $MY_SECRET > said.txt
if [ -e half ]; then rm half; echo hello world > greeting.txt
else touch half; echo hi world > greeting.txt; rm gone.txt
ln -s said.txt link; printf '\377' > odd.bin; printf '#!/bin/sh' > tool; chmod +x tool; fi
echo I did it with $MY_SECRET
"""
FILES = {"greeting.txt": "hello\n", "gone.txt": "x\n"}
WORDS = ("revise", "apply")


def flow(command: str = AGENT) -> str:
    runtime = msgspec.json.encode({"kind": "command", "command": command, "env": ["MY_SECRET"]})
    return re.sub(r"runtime: .*", lambda _: f"runtime: {runtime.decode()}", solo("true"))


async def play(root: Path, text: str, request: str = "Greet the world", **more: Any) -> RunState:
    async with engine_on(root) as engine:
        run_id = await engine.start(order(text, request, **more))
        seen = 0
        for word in WORDS:
            async for entry in engine.events(run_id, after=seen):
                seen = entry.seq
            for ask in await engine.asks(run_id):
                said = {"decision": word, "reason": "greet it politely"}
                await engine.answer(ask.ask_id, PersonAnswer(said, ask.person))
        async for _ in engine.events(run_id, after=seen):
            pass
        return await engine.state(run_id)


def landed(root: Path) -> dict[str, str]:
    return {
        path.name: str(path.readlink())
        if path.is_symlink()
        else path.read_bytes().decode("latin-1")
        for path in root.iterdir()
        if path.name not in {".git", ".agentcanvas"}
    }


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MY_SECRET", SECRET)
    return SECRET


async def test_a_recorded_team_works_again_without_its_agents(
    tmp_path: Path, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = repository(tmp_path / "first", FILES)
    assert (await play(first, flow(), record="greet")).status is RunStatus.DONE
    tapes = first / ".agentcanvas" / "cassettes"
    assert len(list(tapes.rglob("*.json"))) == 2
    for path in tapes.rglob("*.json"):
        assert secret not in path.read_text()

    monkeypatch.delenv("MY_SECRET")
    second = repository(tmp_path / "second", FILES)
    shutil.copytree(tapes, second / ".agentcanvas" / "cassettes")
    state = await play(second, flow("exit 1"), replay="greet")
    assert state.status is RunStatus.DONE
    expected = landed(first) | {"said.txt": "[redacted:MY_SECRET]\n"}
    assert landed(second) == expected
    assert (second / "tool").stat().st_mode & 0o100
    assert "half" not in expected
    assert "gone.txt" not in expected


async def test_another_request_is_a_drift_that_ends_the_run(tmp_path: Path, secret: str) -> None:
    root = repository(tmp_path / "repo", FILES)
    await play(root, flow(), record="greet")
    state = await play(root, flow(), "Greet the moon", replay="greet")
    assert state.status is not RunStatus.DONE
    assert "was 'Greet the world' and is 'Greet the moon'" in state.reason


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"replay": "nothing"}, "There is no cassette nothing; make one by the same"),
        ({"replay": "../x"}, "no name for a cassette"),
        ({"record": "/etc"}, "no name for a cassette"),
        ({"record": "a", "replay": "b"}, "not both"),
    ],
)
async def test_a_cassette_that_cannot_be_is_refused_before_anything_starts(
    tmp_path: Path, more: dict[str, str], sentence: str
) -> None:
    root = repository(tmp_path / "repo", FILES)
    async with engine_on(root) as engine:
        with pytest.raises(ValidationError, match=sentence):
            await engine.start(order(flow("true"), **more))
        assert not await engine.runs()
