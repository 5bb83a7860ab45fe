"""The three protocols, over the vendors' own clients, against their real wire forms."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentcanvas.agents.runtime import Image, Outcome, TurnResult
from agentcanvas.agents.runtimes.model import Api, ModelOptions, ModelRuntime
from agentcanvas.clock import VirtualClock
from agentcanvas.protocol.records import (
    FailureClass,
    FileChangeEvent,
    RetryEvent,
    SessionEvent,
    TextEvent,
    ThinkingEvent,
    ToolCallEvent,
    ToolResultEvent,
    Usage,
)
from agentcanvas.sandbox.confine import Confinement, View
from tests.agents.conftest import Events, turn
from tests.agents.runtimes.model.canned import (
    Canned,
    CannedEndpoint,
    chat,
    chat_call,
    message_item,
    messages,
    refusal,
    responses,
    serving,
)

KEY = "sk-test-0123456789"


def says(api: Api, text: str) -> Canned:
    match api:
        case Api.CHAT:
            return chat({"role": "assistant", "content": text})
        case Api.RESPONSES:
            return responses(message_item(text), text=text)
        case Api.ANTHROPIC:
            return messages({"type": "text", "text": text})


def wants(api: Api, name: str, **arguments: Any) -> Canned:
    match api:
        case Api.CHAT:
            return chat_call(name, **arguments)
        case Api.RESPONSES:
            call = {
                "type": "function_call",
                "id": "f1",
                "call_id": "t1",
                "name": name,
                "arguments": json.dumps(arguments),
                "status": "completed",
            }
            return responses(call)
        case Api.ANTHROPIC:
            block = {"type": "tool_use", "id": "t1", "name": name, "input": arguments}
            return messages(block, stop="tool_use")


@pytest.fixture(params=list(Api))
def api(request: pytest.FixtureRequest) -> Api:
    return Api(request.param)


Runs = Callable[..., ModelRuntime]


@pytest.fixture
def runtime(strongest: Confinement, clock: VirtualClock) -> Runs:
    def make(endpoint: CannedEndpoint, api: Api, **options: Any) -> ModelRuntime:
        return ModelRuntime(
            "stub-1",
            strongest,
            clock,
            url=f"{endpoint.url}{'' if api is Api.ANTHROPIC else '/v1'}",
            key_env="MY_KEY",
            options=ModelOptions(api=api, **options),
            environ={"MY_KEY": KEY},
        )

    return make


async def ask(
    runtime: ModelRuntime, events: Events, place: View | None = None, **more: Any
) -> TurnResult:
    return await runtime.run(turn(place=place, sessions=beside(place), **more), events)


def beside(place: View | None) -> Path | None:
    """Where sessions are kept: beside what the agent's processes see."""
    return None if place is None else place.home.parent / "sessions"


async def test_a_model_answers_and_its_tokens_are_counted(
    api: Api, runtime: Runs, events: Events
) -> None:
    async with serving(says(api, "first\nsecond")) as endpoint:
        result = await ask(runtime(endpoint, api), events)
    assert result.text == "first\nsecond"
    assert [event.text for event in events.of(TextEvent)] == ["first", "second"]
    assert result.usage == Usage(
        input_tokens=100,
        output_tokens=10,
        cache_read=5,
        model="stub-1",
        cache_write=result.usage.cache_write,
    )
    (asked,) = endpoint.asked
    sent = asked.headers.get("x-api-key") or asked.headers["authorization"].removeprefix("Bearer ")
    assert sent == KEY


async def test_a_model_changes_a_file_and_hears_what_came_of_it(
    api: Api, runtime: Runs, events: Events, place: View
) -> None:
    writes = wants(api, "write_file", path="a/b.txt", content="hello\n")
    async with serving(writes, says(api, "done")) as endpoint:
        result = await ask(runtime(endpoint, api), events, place)
    assert result.outcome is Outcome.OK
    assert (place.tree / "a/b.txt").read_text() == "hello\n"
    assert events.of(FileChangeEvent)[0].path == "a/b.txt"
    assert events.of(ToolCallEvent)[0].name == "write_file"
    assert not events.of(ToolResultEvent)[0].failed
    assert result.usage.input_tokens == 200
    assert "Wrote a/b.txt" in str(endpoint.asked[1].body)


async def test_tools_are_offered_only_where_there_are_files(
    api: Api, runtime: Runs, events: Events, place: View
) -> None:
    async with serving(says(api, "a"), says(api, "b")) as endpoint:
        await ask(runtime(endpoint, api), events)
        await ask(runtime(endpoint, api), events, place)
    assert "tools" not in endpoint.asked[0].body
    names = [
        tool.get("name") or tool["function"]["name"] for tool in endpoint.asked[1].body["tools"]
    ]
    assert names == ["read_file", "list_files", "search", "run", "write_file", "edit_file"]


async def test_a_revision_goes_on_with_the_same_conversation(
    api: Api, runtime: Runs, events: Events, place: View
) -> None:
    async with serving(says(api, "one"), says(api, "two")) as endpoint:
        first = await ask(runtime(endpoint, api), events, place, prompt="Begin.")
        again = turn(
            place=place,
            sessions=beside(place),
            prompt="Go on.",
            session_id=first.session_id,
            revision=1,
        )
        second = await runtime(endpoint, api).run(again, events)
    assert second.session_id == first.session_id
    said = str(endpoint.asked[1].body)
    assert said.index("Begin.") < said.index("one") < said.index("Go on.")


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"api":"chat","entries":[{"type":"?"}]}'])
async def test_a_conversation_that_is_damaged_begins_anew(
    api: Api, runtime: Runs, events: Events, place: View, damage: str
) -> None:
    async with serving(says(api, "one"), says(api, "two")) as endpoint:
        first = await ask(runtime(endpoint, api), events, place, prompt="Begin.")
        (kept,) = (place.home.parent / "sessions").iterdir()
        kept.write_text(damage)
        again = await ask(
            runtime(endpoint, api), events, place, prompt="Go on.", session_id=first.session_id
        )
    assert again.text == "two"
    assert "Begin." not in str(endpoint.asked[1].body)


@pytest.mark.req("S2", "D18")
async def test_no_link_that_an_agent_plants_leads_its_conversation_to_a_file_of_the_user(
    runtime: Runs, events: Events, place: View, tmp_path: Path
) -> None:
    of_the_user = tmp_path / "of-the-user"
    of_the_user.mkdir()
    (of_the_user / "kept.txt").write_text("mine")
    plants = (
        f"mkdir -p $HOME/.agentcanvas-model && cd $HOME/.agentcanvas-model && "
        f"ln -s {of_the_user}/kept.txt s1.new && ln -s {of_the_user}/kept.txt s1.json && "
        f"ln -s {of_the_user} $HOME/sessions"
    )
    tries = (wants(Api.CHAT, "run", command=plants), wants(Api.CHAT, "run", command="true"))
    async with serving(*tries, says(Api.CHAT, "done")) as endpoint:
        result = await ask(runtime(endpoint, Api.CHAT), events, place, session_id="s1")
    assert result.outcome is Outcome.OK
    assert [done.failed for done in events.of(ToolResultEvent)] == [False, False]
    assert [path.name for path in of_the_user.iterdir()] == ["kept.txt"]
    assert (of_the_user / "kept.txt").read_text() == "mine"


@pytest.mark.req("S2", "D18")
async def test_an_agent_neither_reads_nor_changes_what_is_kept_of_its_conversation(
    runtime: Runs, events: Events, place: View
) -> None:
    kept = place.home.parent / "sessions" / "s1.json"
    tries = [
        wants(Api.CHAT, "run", command=command)
        for command in ("true", f"cat {kept}", f"echo forged > {kept}", f"rm -rf {kept.parent}")
    ]
    async with serving(*tries, says(Api.CHAT, "done")) as endpoint:
        await ask(runtime(endpoint, Api.CHAT), events, place, session_id="s1", prompt="Begin.")
    read, changed, removed = events.of(ToolResultEvent)[1:]
    assert "Begin." not in read.output
    assert read.failed
    assert changed.failed
    assert kept.is_file(), removed.output
    assert b"Begin." in kept.read_bytes()


async def test_an_image_is_shown(api: Api, runtime: Runs, events: Events, place: View) -> None:
    picture = place.tree / "a.png"
    picture.write_bytes(b"\x89PNG picture")
    async with serving(says(api, "I see")) as endpoint:
        await ask(
            runtime(endpoint, api), events, place, images=(Image(path=picture, media="image/png"),)
        )
    assert base64.b64encode(b"\x89PNG picture").decode() in str(endpoint.asked[0].body)


@pytest.mark.parametrize(
    ("refused", "expected", "tries"),
    [
        (
            refusal(401, f"Incorrect API key provided: {KEY}", "invalid_api_key"),
            FailureClass.AUTH,
            1,
        ),
        (refusal(403, "no", "permission_error"), FailureClass.AUTH, 1),
        (refusal(404, "no such model", "not_found_error"), FailureClass.MODEL_NOT_FOUND, 1),
        (
            refusal(429, "You exceeded your current quota", "insufficient_quota"),
            FailureClass.QUOTA,
            1,
        ),
        (
            refusal(400, "Your credit balance is too low", "invalid_request_error"),
            FailureClass.QUOTA,
            1,
        ),
        (
            refusal(400, "maximum context length is 8", "invalid_request_error"),
            FailureClass.TURN_LIMIT,
            1,
        ),
        (refusal(429, "slow down", "rate_limit_error"), FailureClass.RATE_LIMIT, 3),
        (refusal(500, "oops", "api_error"), FailureClass.SERVER, 3),
        (refusal(529, "busy", "overloaded_error"), FailureClass.SERVER, 3),
        (refusal(422, "odd", ""), FailureClass.UNKNOWN, 1),
    ],
)
async def test_a_refusal_is_told_apart_and_tried_again_only_where_that_may_help(
    api: Api,
    runtime: Runs,
    refused: Canned,
    expected: FailureClass,
    tries: int,
) -> None:
    events = Events()
    async with serving(refused, refused, refused) as endpoint:
        result = await ask(runtime(endpoint, api), events)
    assert result.outcome is Outcome.FAILED
    assert result.error_class is expected
    assert len(endpoint.asked) == tries
    assert len(events.of(RetryEvent)) == tries - 1
    assert KEY not in result.error


async def test_a_busy_endpoint_is_tried_again_and_that_is_shown(
    api: Api, runtime: Runs, events: Events
) -> None:
    busy = refusal(529, "busy", "overloaded_error", retry_after="7")
    async with serving(busy, says(api, "fine")) as endpoint:
        result = await ask(runtime(endpoint, api), events)
    assert result.text == "fine"
    assert [event.wait_ms for event in events.of(RetryEvent)] == [7000]


async def test_who_is_told_to_wait_long_says_until_when(
    api: Api, runtime: Runs, events: Events, clock: VirtualClock
) -> None:
    async with serving(refusal(429, "later", "rate_limit_error", retry_after="3600")) as endpoint:
        result = await ask(runtime(endpoint, api), events)
    assert result.error_class is FailureClass.RATE_LIMIT
    assert result.retry_at_ms == clock.now_ms() + 3_600_000


BROKEN: Mapping[str, Canned] = {
    "no stream": Canned(""),
    "not JSON": Canned("data: {broken\n\n"),
    "other JSON": Canned("data: [1, 2]\n\n"),
    "cut off": Canned('data: {"id"', broken=True),
    "not even a stream": Canned("<html>Proxy</html>", media="text/html"),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
async def test_a_broken_answer_is_tried_again(
    api: Api, runtime: Runs, events: Events, broken: Canned
) -> None:
    async with serving(broken, says(api, "fine")) as endpoint:
        result = await ask(runtime(endpoint, api), events)
    assert result.text == "fine"
    assert len(events.of(RetryEvent)) == 1


async def test_an_endpoint_that_is_not_there_is_named(
    api: Api, runtime: Runs, events: Events
) -> None:
    async with serving() as endpoint:
        pass
    result = await ask(runtime(endpoint, api, attempts=2), events)
    assert result.error_class is FailureClass.NETWORK
    assert "could not be reached" in result.error


async def test_an_answer_without_end_is_no_answer(api: Api, runtime: Runs, events: Events) -> None:
    endless = {
        Api.CHAT: chat({"content": "half"}, end=None),
        Api.RESPONSES: Canned(""),
        Api.ANTHROPIC: messages({"type": "text", "text": "half"}, stop=None),
    }[api]
    async with serving(endless) as endpoint:
        result = await ask(runtime(endpoint, api, attempts=1), events)
    assert result.outcome is Outcome.FAILED
    assert result.error_class in {FailureClass.SERVER, FailureClass.NETWORK}


async def test_an_answer_that_ran_out_of_room_is_not_taken_for_whole(
    api: Api, runtime: Runs, events: Events
) -> None:
    cut = {
        Api.CHAT: chat({"content": "half"}, end="length"),
        Api.RESPONSES: responses(message_item("half"), status="incomplete", text="half"),
        Api.ANTHROPIC: messages({"type": "text", "text": "half"}, stop="max_tokens"),
    }[api]
    async with serving(cut) as endpoint:
        result = await ask(runtime(endpoint, api), events)
    assert result.error_class is FailureClass.TURN_LIMIT
    assert result.text == "half"


async def test_signed_thoughts_go_back_as_they_came(
    runtime: Runs, events: Events, place: View
) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "sig=="}
    call = {"type": "tool_use", "id": "t1", "name": "list_files", "input": {}}
    first = messages(thought, call, stop="tool_use")
    async with serving(first, says(Api.ANTHROPIC, "ok")) as endpoint:
        await ask(runtime(endpoint, Api.ANTHROPIC), events, place)
    back = endpoint.asked[1].body["messages"][1]["content"]
    assert back[0] == thought
    assert back[1] == call
    assert [event.text for event in events.of(ThinkingEvent)] == ["hm"]


async def test_a_response_that_failed_is_tried_again(runtime: Runs, events: Events) -> None:
    async with serving(responses(status="failed"), says(Api.RESPONSES, "fine")) as endpoint:
        result = await ask(runtime(endpoint, Api.RESPONSES), events)
    assert result.text == "fine"


async def test_without_a_key_the_variable_is_named(
    strongest: Confinement, clock: VirtualClock, events: Events
) -> None:
    result = await ModelRuntime("claude-x", strongest, clock, environ={}).run(turn(), events)
    assert result.error_class is FailureClass.AUTH
    assert "ANTHROPIC_API_KEY" in result.error
    assert not events.of(SessionEvent)
