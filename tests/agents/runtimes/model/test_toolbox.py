"""A model's tools: what they do, and that nothing outside the place is reached by them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentcanvas.agents.runtimes.model.toolbox import (
    LARGEST_FILE,
    LONGEST_OUTPUT,
    Toolbox,
    shortened,
)
from agentcanvas.agents.tools import Used
from agentcanvas.clock import SystemClock
from agentcanvas.sandbox.confine import Confinement, View
from agentcanvas.sandbox.trees import remove_path
from tests.agents.conftest import Events

Use = Callable[..., Any]


@pytest.fixture
def toolbox(
    place: View, strongest: Confinement, system_clock: SystemClock, events: Events
) -> Toolbox:
    return Toolbox(place, strongest, system_clock, events)


@pytest.fixture
def use(toolbox: Toolbox) -> Use:
    async def call(name: str, **arguments: Any) -> Used:
        return await toolbox.tools.use(name, json.dumps(arguments))

    return call


async def test_what_is_written_can_be_read_listed_searched_and_edited(
    use: Use, place: View
) -> None:
    assert not (await use("write_file", path="src/a.py", content="one\ntwo\n")).failed
    assert (await use("read_file", path="src/a.py")).output == "     1\tone\n     2\ttwo"
    assert (await use("read_file", path="src/a.py", first_line=2)).output == "     2\ttwo"
    assert (await use("read_file", path="src/a.py", lines=1)).output.endswith("(1 more lines)")
    assert (await use("list_files")).output == "src/"
    assert (await use("search", pattern="t[w]o")).output == "src/a.py:2:two"
    assert (await use("search", pattern="three", path="src")).output == "Nothing matches."
    assert not (await use("edit_file", path="src/a.py", old="two", new="2")).failed
    assert (place.tree / "src/a.py").read_text() == "one\n2\n"


async def test_a_file_can_be_written_far_down(use: Use, place: View) -> None:
    assert not (await use("write_file", path="d/" * 1200 + "a", content="x")).failed
    assert (place.tree / ("d/" * 1200 + "a")).read_text() == "x"
    remove_path(place.tree / "d")  # pytest could not


async def test_a_file_can_be_named_as_commands_see_it(
    use: Use, place: View, strongest: Confinement
) -> None:
    inside = strongest.places(place).tree
    assert not (await use("write_file", path=str(inside / "a"), content="x")).failed
    assert (place.tree / "a").read_text() == "x"


async def test_a_command_gives_its_output_and_its_exit_code(use: Use) -> None:
    done = await use("run", command="echo out; echo err >&2; exit 3")
    assert done.exit_code == 3
    assert done.failed
    assert set(done.output.split("\n")[:2]) == {"out", "err"}
    assert "exit code 3" in done.output


async def test_a_command_that_does_not_end_is_ended(use: Use) -> None:
    done = await use("run", command="tail -f /dev/null", timeout_s=0.2)
    assert done.failed
    assert "was stopped" in done.output


async def test_text_that_is_not_there_once_is_not_replaced(use: Use, place: View) -> None:
    (place.tree / "a").write_text("x x")
    assert "occurs 2 times" in (await use("edit_file", path="a", old="x", new="y")).output
    assert "does not occur" in (await use("edit_file", path="a", old="z", new="y")).output
    assert (place.tree / "a").read_text() == "x x"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("hidden")
    return secret


@pytest.mark.req("PR4")
@pytest.mark.parametrize(
    "name", ["../secret/key", "/etc/passwd", "out/key", "link", ".git/config", "a/../../secret/key"]
)
async def test_no_tool_reaches_out_of_the_place(
    use: Use, place: View, outside: Path, name: str
) -> None:
    (place.tree / "out").symlink_to(outside)
    (place.tree / "link").symlink_to(outside / "key")
    for tool, more in (
        ("read_file", {}),
        ("write_file", {"content": "x"}),
        ("edit_file", {"old": "hidden", "new": "x"}),
        ("list_files", {}),
        ("search", {"pattern": "hidden"}),
    ):
        done = await use(tool, path=name, **more)
        assert done.failed or done.output == "Nothing matches.", tool
        assert "hidden" not in done.output
    assert (outside / "key").read_text() == "hidden"


async def test_what_is_no_plain_file_is_not_waited_for(use: Use, place: View) -> None:
    os.mkfifo(place.tree / "pipe")
    (place.tree / "folder").mkdir()
    for name in ("pipe", "folder"):
        assert (await use("read_file", path=name)).failed
        assert (await use("write_file", path=name, content="x")).failed


async def test_a_file_that_is_too_large_or_no_text_is_refused_by_name(
    use: Use, place: View
) -> None:
    with (place.tree / "large").open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    (place.tree / "binary").write_bytes(b"\xff\xfe")
    assert "too many to read" in (await use("read_file", path="large")).output
    assert (await use("read_file", path="binary")).failed


async def test_who_may_not_write_is_offered_no_way_to(
    place: View, strongest: Confinement, system_clock: SystemClock, events: Events
) -> None:
    reading = Toolbox(replace(place, writable=False), strongest, system_clock, events)
    names = [tool.name for tool in reading.tools.offered]
    assert names == ["read_file", "list_files", "search", "run"]
    done = await reading.tools.use("write_file", '{"path": "a", "content": "x"}')
    assert "There is no tool write_file" in done.output
    assert (await reading.tools.use("run", '{"command": "echo x > a"}')).failed
    assert not (place.tree / "a").exists()


_JSON = st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(
    name=st.sampled_from(["read_file", "list_files", "write_file", "edit_file", "nothing", ""]),
    arguments=st.text()
    | st.dictionaries(st.sampled_from(["path", "content", "old", "new", "lines"]), _JSON).map(
        json.dumps
    ),
)
async def test_whatever_a_model_writes_as_arguments_is_answered(
    toolbox: Toolbox, name: str, arguments: str
) -> None:
    assert isinstance(await toolbox.tools.use(name, arguments), Used)


def test_what_is_too_long_keeps_its_beginning_and_its_end() -> None:
    text = shortened("a" * LONGEST_OUTPUT + "b" * LONGEST_OUTPUT)
    assert len(text) < LONGEST_OUTPUT + 100
    assert text.startswith("a")
    assert text.endswith("b")
