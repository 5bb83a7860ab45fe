"""The commands about a hub as a person gives them, with a server that has it and without one."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from typer.testing import CliRunner

from agentcanvas.cli import app
from agentcanvas.cli.live.said_in_hub import message_text
from agentcanvas.errors import AgentCanvasError
from agentcanvas.hub.agent import Agent, Task
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.redaction import TOKEN
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.kinds import Error, Kind, RejectReason, TaskResult
from agentcanvas.store import OwnerLock
from agentcanvas.store.lock import lock_file
from tests.cli.hub_thread import ServedHub, served
from tests.hub.helpers import assign, message, of_kind
from tests.hub.test_keeper import MAC

ROOT = Path(__file__).parents[2]
NO_HUB = "There is no hub in"


class Done(NamedTuple):
    """How a command ended, and what it said."""

    exit_code: int
    stdout: str
    stderr: str


def give(*words: str, stdin: str | None = None) -> Done:
    """Give a command; an error of ours is an exit code and a sentence, never an exception."""
    result = CliRunner().invoke(app, list(words), input=stdin)
    assert "Traceback" not in result.output
    if isinstance(result.exception, AgentCanvasError):  # as main does
        return Done(1, result.stdout, f"{result.stderr}agentcanvas: {result.exception}")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


def lines(result: Done) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def worker() -> Agent:
    agent = Agent("worker-1", capabilities=["python"])

    @agent.task("count")
    async def count(task: Task) -> object:
        await task.progress(50, "counting")
        return {"letters": len(task.input)}

    @agent.task("echo")
    async def echo(task: Task) -> object:
        return task.input

    @agent.task("refuse")
    async def refuse(task: Task) -> None:
        task.reject(RejectReason.CAPABILITY_MISMATCH, ["worker-2"], message="not mine")

    return agent


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".agentcanvas").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    return tmp_path


@pytest.fixture
def hub(root: Path) -> Iterator[ServedHub]:
    with served(root, worker()) as hub:
        yield hub


# -- tokens ----------------------------------------------------------------------------------------


@pytest.mark.req("H6")
def test_a_token_is_printed_alone_and_lets_its_owner_in_while_the_hub_runs(hub: ServedHub) -> None:
    made = give("token", "new", "worker-2", "--permission", "files.read")
    assert made.exit_code == 0
    text = made.stdout.removesuffix("\n")
    assert TOKEN.fullmatch(text), "alone on standard output"
    principal = hub.hub.tokens.authenticate(text, claimed="worker-2")
    assert principal.permissions == {"files.read"}
    (line,) = lines(give("token", "list", "--json"))
    assert (line["name"], line["kind"]) == ("worker-2", "agent")
    _, _, secret = text.split("_", 2)  # a secret may contain "_" itself
    assert len(secret) > 30
    assert secret not in give("token", "list").stdout


def test_a_token_is_made_before_a_hub_runs_in_a_folder_of_its_own(root: Path) -> None:
    data = str(root / "new" / "data")
    made = give("token", "new", "worker-1", "--data", data)
    assert TOKEN.fullmatch(made.stdout.strip())
    assert [each["name"] for each in lines(give("token", "list", "--json", "--data", data))] == [
        "worker-1"
    ]
    assert stat.S_IMODE(Path(data).stat().st_mode) == 0o700
    assert give("token", "list").exit_code == 1, "the workspace is another hub"


def test_a_token_goes_to_a_new_file_that_only_its_owner_can_read(root: Path) -> None:
    file = root / "token"
    made = give("token", "new", "worker-1", "--out", str(file))
    assert (made.exit_code, made.stdout) == (0, "")
    assert TOKEN.fullmatch(file.read_text().strip())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()
    assert give("token", "new", "worker-1", "--out", str(file)).exit_code == 2
    assert file.read_bytes() == before
    assert give("token", "new", "worker-1", "--out", str(root / "no" / "where")).exit_code == 1
    assert len(lines(give("token", "list", "--json"))) == 1, "that nobody has is revoked"


@pytest.mark.parametrize("buffered", ["", "1"])
def test_a_token_that_cannot_be_printed_is_revoked(root: Path, buffered: str) -> None:
    program = [sys.executable, "-c", "from agentcanvas.cli import main; main()"]
    with open("/dev/full", "w") as full:  # noqa: PTH123  # a device
        done = subprocess.run(
            [*program, "token", "new", "worker-1"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=root,
            env={**os.environ, "PYTHONUNBUFFERED": buffered},
            check=False,
        )
    assert done.returncode == 1
    assert "was revoked" in done.stderr
    assert "Traceback" not in done.stderr
    assert lines(give("token", "list", "--json")) == []
    assert len(lines(give("token", "list", "--json", "--all"))) == 1


def test_a_token_is_revoked_by_its_id_or_by_the_name_it_is_for(hub: ServedHub) -> None:
    first, second = (give("token", "new", "w").stdout.strip() for _ in range(2))
    ids = [line["id"] for line in lines(give("token", "list", "--json"))]
    revoked = give("token", "revoke", ids[0])
    assert "1 token of w revoked" in revoked.stdout
    assert "another token" in revoked.stdout
    assert hub.hub.tokens.authenticate(second).id == "w"
    assert give("token", "revoke", "w").exit_code == 0
    for text in (first, second):
        assert not _is_good(hub, text)
    again = give("token", "revoke", "w")
    assert again.exit_code == 1
    assert "no token" in again.stderr
    assert "made yet" in give("token", "list").stdout
    assert give("token", "list", "--all").stdout.count(" agent ") == 2


def _is_good(hub: ServedHub, text: str) -> bool:
    try:
        hub.hub.tokens.authenticate(text)
    except Exception:  # noqa: BLE001  # whatever it is, it does not let in
        return False
    return True


# -- agents ----------------------------------------------------------------------------------------


@pytest.mark.req("L1")
def test_agents_are_shown_with_what_they_can_do_and_found_by_it(hub: ServedHub) -> None:
    give("token", "new", "sleeper")
    shown = give("agents").stdout
    assert "worker-1" in shown
    assert "python" in shown
    assert "sleeper" in shown
    by_name = {line["id"]: line for line in lines(give("agents", "--json"))}
    assert by_name["worker-1"]["state"] == "present"
    assert set(by_name["worker-1"]["capabilities"]) >= {"python", "count"}
    assert by_name["sleeper"]["state"] == "away"
    able = lines(give("agents", "--json", "-c", "python", "-c", "count"))
    assert [line["id"] for line in able] == ["worker-1"]
    assert [line["id"] for line in lines(give("agents", "--json", "--present"))] == ["worker-1"]
    assert "No agent" in give("agents", "-c", "drawing").stdout
    assert hub.hub.store.head >= 0


def test_without_a_hub_every_command_says_how_to_start_one(root: Path) -> None:
    for words in (
        ("agents",),
        ("tail",),
        ("trace", "x"),
        ("deadletters",),
        ("send", "a", "b"),
        ("token", "list"),
        ("token", "revoke", "x"),
        ("audit", "verify"),
        ("audit", "export"),
    ):
        done = give(*words)
        assert done.exit_code == 1, words
        assert NO_HUB in done.stderr
        assert "agentcanvas serve" in done.stderr
        elsewhere = give(*words, "--data", str(root / "d"))
        assert "agentcanvas hub --data" in elsewhere.stderr, words
    assert not (root / "d").exists()


def test_a_hub_that_does_not_run_is_said_not_to(root: Path) -> None:
    give("token", "new", "worker-1", "--data", str(root / "d"))
    shown = give("agents", "--data", str(root / "d"))
    assert "does not run" in shown.stdout
    kept = give("send", "worker-1", "count", "abc", "--data", str(root / "d"))
    assert kept.exit_code == 0
    assert "waits until the hub runs" in kept.stdout
    assert give("send", "worker-1", "x", "--wait", "--data", str(root / "d")).exit_code == 1
    ended = give("tail", "--data", str(root / "d"))
    assert "person:you → worker-1  task.assign  count: abc" in ended.stdout
    assert "nothing more will come" in ended.stderr
    (line,) = lines(give("agents", "--json", "--data", str(root / "d")))
    assert line["waiting"] == 1


def test_a_folder_that_another_process_holds_and_does_not_serve_is_said_to_be_held(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentcanvas.app.hub_office._PAUSE_S", 0.0)
    give("token", "new", "worker-1")
    with OwnerLock(lock_file(root / ".agentcanvas" / "agentcanvas.db")):
        for words in (("agents",), ("token", "new", "worker-2"), ("send", "worker-1", "count")):
            done = give(*words)
            assert done.exit_code == 1
            assert "cannot be reached" in done.stderr
        assert give("audit", "verify").exit_code == 0, "reading needs no lock"


# -- send ------------------------------------------------------------------------------------------


@pytest.mark.req("H3")
def test_a_task_is_done_and_its_output_printed(hub: ServedHub) -> None:
    done = give("send", "worker-1", "count", "abc", "--wait")
    assert (done.exit_code, done.stdout) == (0, '{"letters":3}\n')
    assert "worker-1: 50 % counting" in done.stderr
    words = give("send", "worker-1", "echo", "two\nlines", "--wait")
    assert words.stdout == "two\nlines\n"
    data = give("send", "worker-1", "echo", '{"a": [1, 2.50]}', "--wait")
    assert json.loads(data.stdout) == {"a": [1, 2.5]}
    typed = give("send", "worker-1", "echo", "-", "--wait", stdin="from a pipe")
    assert typed.stdout == "from a pipe\n"
    (line,) = lines(give("send", "worker-1", "count", "abc", "--wait", "--json"))
    assert line["message"]["kind"] == "task.complete"
    assert hub.hub.broker.statistics().dead == 0


def test_a_task_that_is_not_done_ends_with_1_and_says_why(hub: ServedHub) -> None:
    refused = give("send", "worker-1", "refuse", "--wait")
    assert refused.exit_code == 1
    assert "CAPABILITY_MISMATCH: not mine Ask worker-2." in refused.stderr
    unknown = give("send", "worker-1", "nonsense", "--wait")
    assert unknown.exit_code == 1
    give("token", "new", "sleeper")
    late = give("send", "sleeper", "count", "--wait", "--timeout", "0.01")
    assert late.exit_code == 1
    assert hub.hub.store.head > 0


def test_a_deep_conversation_keeps_its_form(hub: ServedHub) -> None:
    for name in ("a", "b"):
        give("token", "new", name)
    replies = [("m0", ""), ("m1", "m0"), ("m2", "m1"), ("side", "m1"), ("m3", "m2")]
    replies += [(f"m{n}", f"m{n - 1}") for n in range(4, 40)]
    for name, reply_to in replies:
        said = message("a", "b", name, id=name, correlation_id="deep", reply_to=reply_to or UNSET)
        hub.do(hub.hub.hub.send, Principal("a"), said)
    tree = [line.rpartition("  +")[0] for line in give("trace", "deep").stdout.splitlines()[1:-1]]
    assert tree[:4] == [
        "└── a → b  status.query  m1  waits",
        "    ├── a → b  status.query  m2  waits",
        "    │   └── a → b  status.query  m3  waits",
        "    │       └── a → b  status.query  m4  waits",
    ]
    assert tree[-2].startswith("… 22 more  ")
    assert tree[-2].endswith("└── a → b  status.query  m39  waits")
    assert tree[-1] == "    └── a → b  status.query  side  waits"


@pytest.mark.req("M1")
def test_a_message_is_handed_in_as_it_stands(hub: ServedHub, root: Path) -> None:
    give("token", "new", "asker")
    file = root / "message.json"
    file.write_text(json.dumps({**MAC, "to": "worker-1"}))
    sent = give("send", "--file", str(file))
    assert sent.exit_code == 0
    assert MAC["message_id"] in sent.stdout
    again = give("send", "--file", str(file))
    assert "was there already" in again.stdout
    tree = give("trace", MAC["message_id"]).stdout
    assert "asker → worker-1  task.assign  review: x" in tree
    assert give("send", "--file", "-", stdin="{").exit_code == 1
    assert give("send", "--file", "-", stdin="").exit_code == 1
    assert give("send", "--file", str(root / "none")).exit_code == 2
    assert hub.hub.store.head > 0


def test_a_number_that_nothing_can_hold_is_shown_as_it_was_written(
    hub: ServedHub, root: Path
) -> None:
    give("token", "new", "asker")
    file = root / "message.json"
    message = {**MAC, "to": "worker-1"}
    message["payload"] = {**message["payload"], "input": {"said": "@"}}
    file.write_text(json.dumps(message).replace('"@"', '"\\u0041", "n": 1e999'))
    assert give("send", "--file", str(file)).exit_code == 0
    for command in (("tail", "--no-follow"), ("trace", MAC["message_id"])):
        shown = give(*command)
        assert shown.exit_code == 0
        assert '"n": 1e999' in shown.stdout
    assert hub.hub.store.head > 0


def test_an_answer_that_names_nobody_is_one_to_whoever_asked() -> None:
    answer = of_kind(Kind.TASK_COMPLETE, "b", None, TaskResult(summary="done"), reply_to="c-1")
    assert message_text(answer).plain == "b → whoever asked  task.complete  done"


def test_an_unknown_agent_is_named_and_those_who_are_known_are_pointed_to(hub: ServedHub) -> None:
    done = give("send", "nobody", "count")
    assert done.exit_code == 1
    assert "Agent not found: nobody" in done.stderr
    assert "agentcanvas agents" in done.stderr
    assert hub.hub.broker.statistics().posted == 0


@pytest.mark.parametrize(
    "words",
    [
        ("send",),
        ("send", "worker-1"),
        ("send", "worker-1", "count", "--file", "x"),
        ("send", "worker-1", "count", "--priority", "11"),
        ("send", "worker-1", "count", "--timeout", "0"),
        ("send", "worker-1", "count", "{not json"),
        ("tail", "--last", "-1"),
        ("deadletters", "resend"),
        ("deadletters", "resend", "1", "--all"),
        ("deadletters", "show", "0"),
        ("deadletters", "show", "many"),
        ("token", "new"),
        ("trace",),
    ],
)
def test_a_command_that_cannot_be_meant_is_refused_with_2(
    root: Path, words: tuple[str, ...]
) -> None:
    assert give(*words).exit_code == 2
    assert not list((root / ".agentcanvas").iterdir())


# -- the record ------------------------------------------------------------------------------------


@pytest.mark.req("M4")
def test_a_conversation_is_shown_as_a_tree(hub: ServedHub, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = json.loads(give("send", "worker-1", "count", "abc", "--json").stdout)
    give("send", "worker-1", "count", "x", "--wait")  # by then the first is done too
    tree = give("trace", sent["thread"]).stdout.splitlines()
    assert tree[0].startswith("person:you → worker-1  task.assign  count: abc")
    kinds = [line.split()[4] for line in tree[1:-1]]
    assert set(kinds) == {"task.accept", "task.progress", "task.complete"}
    assert all(line.startswith(("├── ", "└── ")) for line in tree[1:-1])
    assert tree[-1].startswith("4 messages in ")
    monkeypatch.setenv("COLUMNS", "30")
    assert give("trace", sent["thread"]).stdout.splitlines() == tree, "no line loses its end"
    assert all(re.search(r"  \+\d+\.\d+ s$", line) for line in tree[1:-1])
    (root,) = lines(give("trace", sent["id"], "--json"))
    assert root["message"]["id"] == sent["id"]
    assert len(root["replies"]) == 3
    assert hub.hub.store.head > 0


def _rules(line: dict[str, Any]) -> list[str]:
    """Which rules of form a message of the record breaks."""
    said = " ".join(line["validation_errors"])
    return sorted(re.findall(r"\[([a-z-]+)\]", said))


@pytest.mark.req("M3", "M4")
def test_a_line_of_the_record_has_its_breaches_and_how_long_it_took(
    hub: ServedHub, root: Path
) -> None:
    give("token", "new", "asker")
    file = root / "message.json"
    task = {"task_id": "t-1", "estimated_duration": 1, "accepted_at": "soon"}
    odd = {**MAC, "to": "worker-1", "type": "TASK_ACCEPT", "payload": task, "message_id": "m-1"}
    for each in (odd, {**odd, "message_id": "m-2", "payload": {"task_id": "t-1"}, "mood": 1}):
        file.write_text(json.dumps(each))
        assert give("send", "--file", str(file)).exit_code == 0
    shown = lines(give("tail", "--no-follow", "--json", "--agent", "asker"))
    first, second = [line for line in shown if line["message"]["kind"] == "task.accept"]
    assert {"logged_at", "processing_duration_ms"} <= first.keys()
    assert _rules(first) == ["id-form", "payload-time"]
    assert _rules(second) == ["id-form", "unknown-field", "wanted", "wanted"]
    assert hub.hub.store.head > 0


def test_the_record_is_shown_by_agent_kind_and_conversation(hub: ServedHub) -> None:
    give("token", "new", "asker")
    give("token", "new", "other")
    hub.do(hub.hub.hub.send, Principal("asker"), message("asker", "other", "to other"))
    done = json.loads(give("send", "worker-1", "count", "abc", "--wait", "--json").stdout)
    everything = give("tail", "--no-follow").stdout
    assert "asker → other  status.query  to other" in everything
    assert "task.complete" in everything
    assert "other" not in give("tail", "--no-follow", "--agent", "worker-1").stdout
    assert give("tail", "--no-follow", "--kind", "status.query").stdout.count("\n") == 1
    thread = done["message"]["correlation_id"]
    assert len(lines(give("tail", "--no-follow", "--json", "--correlation", thread))) == 4
    assert len(lines(give("tail", "--no-follow", "--json", "-n", "2"))) == 2
    nothing = give("tail", "--no-follow", "--agent", "nobody")
    assert "Nothing like that" in nothing.stderr


# -- dead letters ----------------------------------------------------------------------------------


def _kill(hub: ServedHub, number: int) -> None:
    async def kill() -> None:
        await hub.hub.store.transact(
            lambda transaction: transaction.execute(
                "UPDATE hub_letters SET state = 2, reason = 'nobody took it' WHERE seq = ?",
                (number,),
            )
        )

    hub.do(kill)


@pytest.mark.req("H2")
def test_dead_letters_are_listed_shown_resent_and_deleted(
    hub: ServedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no dead letters" in give("deadletters").stdout
    for name in ("asker", "sleeper"):
        give("token", "new", name)
    numbers = []
    for text in ("one", "two", "three"):
        receipt = hub.do(
            hub.hub.hub.send, Principal("asker"), message("asker", "sleeper", f"letter {text}")
        )
        _kill(hub, receipt.numbers[0])
        numbers.append(str(receipt.numbers[0]))
    listed = give("deadletters").stdout
    assert "asker → sleeper" in listed
    assert "letter two" in listed
    assert "nobody took it" in listed
    assert [line["number"] for line in lines(give("deadletters", "--json"))] == [
        int(number) for number in numbers
    ]
    monkeypatch.setenv("COLUMNS", "60")
    shown = give("deadletters", "show", numbers[0]).stdout
    assert "Why: nobody took it\n" in shown, "whole, however narrow it is"
    assert '"query_type": "letter one"' in shown
    assert give("deadletters", "resend", numbers[0]).stdout == "1 dead letter resent.\n"
    twice = give("deadletters", "resend", numbers[0], numbers[1])
    assert twice.exit_code == 1
    assert "no dead letter" in twice.stderr
    assert twice.stdout == "1 dead letter resent.\n", "the other one is"
    assert give("deadletters", "delete", "--all").stdout == "1 dead letter deleted.\n"
    assert lines(give("deadletters", "list", "--json")) == []
    assert give("deadletters", "show", numbers[2]).exit_code == 1


# -- consent ---------------------------------------------------------------------------------------


def _urgent(task: str) -> Envelope:
    return assign("asker", "worker-1", task, priority=9, id=f"m-{task}")


@pytest.mark.req("C5", "H6")
def test_a_task_that_needs_consent_is_granted_or_refused(root: Path) -> None:
    asker = Principal("asker")
    with served(root, worker(), person="you") as hub:
        assert "Nothing waits" in give("approvals").stdout
        give("token", "new", "asker")
        for task in ("t1", "t2"):
            assert hub.do(hub.hub.hub.send, asker, _urgent(task)).held
        listed = give("approvals").stdout
        assert listed.count("asker wants worker-1 to do a task.") == 2
        assert "agentcanvas approvals grant" in listed
        ids = {line["scope"]: line["ask_id"] for line in lines(give("approvals", "--json"))}
        granted = give("approvals", "grant", ids["approval:m-t1"][:8])
        assert "is granted; it is delivered" in granted.stdout
        refused = give("approvals", "refuse", ids["approval:m-t2"], "--reason", "not today")
        assert "is refused" in refused.stdout
        assert "Nothing waits" in give("approvals", "list").stdout
        assert give("approvals", "grant", ids["approval:m-t1"]).exit_code == 1, "once only"
        assert give("approvals", "refuse", "").exit_code == 1

        async def told() -> set[str]:
            found: set[str] = set()
            while len(found) < 2:
                head = hub.hub.store.head
                for parcel in await hub.hub.broker.since("asker"):
                    body = parcel.envelope.body
                    if isinstance(body, Error):
                        found.add(body.error_message)
                    elif parcel.envelope.task_id == "t1":
                        found.add("t1 was taken up")
                if len(found) < 2:
                    await hub.hub.store.wait_beyond(head)
            return found

        said = hub.do(told)
    assert "t1 was taken up" in said
    assert any("not today" in each for each in said)


@pytest.mark.req("C5")
def test_consent_that_is_given_while_no_hub_runs_counts_when_it_does(root: Path) -> None:
    with served(root, worker(), person="you") as hub:
        give("token", "new", "asker")
        hub.do(hub.hub.hub.send, Principal("asker"), _urgent("t1"))
    (ask,) = lines(give("approvals", "--json"))
    assert "once the hub runs" in give("approvals", "grant", ask["ask_id"]).stdout
    with served(root, worker(), person="you") as hub:

        async def taken_up() -> list[str | None]:
            while True:
                head = hub.hub.store.head
                if found := await hub.hub.broker.since("asker"):
                    return [parcel.envelope.task_id for parcel in found]
                await hub.hub.store.wait_beyond(head)

        assert set(hub.do(taken_up)) == {"t1"}


# -- audit -----------------------------------------------------------------------------------------


def _tamper(root: Path, *statements: str) -> None:
    connection = sqlite3.connect(root / ".agentcanvas" / "agentcanvas.db")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.fixture
def audited(root: Path) -> Path:
    for number in range(6):
        assert give("token", "new", f"agent-{number}").exit_code == 0
    return root


@pytest.mark.req("D37", "H6")
def test_a_whole_trail_is_said_to_be_whole_also_while_the_hub_runs(audited: Path) -> None:
    assert "6 entries, all of them whole" in give("audit", "verify").stdout
    with served(audited, worker()):
        give("send", "worker-1", "echo", "the text of a task", "--wait")
        assert give("audit", "verify").exit_code == 0
        exported = give("audit", "export").stdout
    assert "the text of a task" not in exported
    assert '"action":"echo"' in exported


@pytest.mark.req("D37", "H6")
@pytest.mark.parametrize(
    ("statements", "entry"),
    [
        (["UPDATE hub_audit SET entry = replace(entry, 'agent-2', 'agent-9') WHERE number = 3"], 3),
        (["DELETE FROM hub_audit WHERE number = 2"], 2),
        (["DELETE FROM hub_audit WHERE number = 1"], 1),
        (
            [
                "UPDATE hub_audit SET number = 99 WHERE number = 4",
                "UPDATE hub_audit SET number = 4 WHERE number = 5",
                "UPDATE hub_audit SET number = 5 WHERE number = 99",
            ],
            4,
        ),
        (["DELETE FROM hub_audit WHERE number > 4"], 5),
        (["DELETE FROM hub_audit"], 1),
        (["UPDATE hub_audit SET hash = x'00' WHERE number = 6"], 6),
    ],
    ids=["changed", "dropped", "first dropped", "moved", "cut off", "emptied", "hash"],
)
def test_the_first_broken_entry_is_named_and_the_exit_code_says_so(
    audited: Path, statements: list[str], entry: int
) -> None:
    _tamper(audited, *statements)
    done = give("audit", "verify")
    assert done.exit_code == 1
    assert f"from entry {entry} on" in done.stderr


@pytest.mark.req("D37", "H6")
def test_an_export_is_verified_without_the_hub_and_shows_a_chain_that_was_written_anew(
    audited: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    copy = elsewhere / "audit.jsonl"
    assert give("audit", "export", "--output", str(copy)).exit_code == 0
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert give("audit", "export", "--output", str(copy)).exit_code == 1
    assert "6 entries" in give("audit", "verify", str(copy)).stdout
    give("token", "new", "agent-7")
    assert give("audit", "verify", "--against", str(copy)).exit_code == 0
    whole = copy.read_bytes().splitlines(keepends=True)
    copy.write_bytes(b"".join([*whole[:2], whole[2].replace(b"agent-2", b"agent-9"), *whole[3:]]))
    assert "entry 3" in give("audit", "verify", str(copy)).stderr
    assert "broken itself" in give("audit", "verify", "--against", str(copy)).stderr
    copy.write_bytes(b"".join(whole))
    (audited / ".agentcanvas" / "agentcanvas.db").unlink()
    for number in range(8):
        give("token", "new", f"other-{number}")
    assert give("audit", "verify").exit_code == 0
    anew = give("audit", "verify", "--against", str(copy))
    assert anew.exit_code == 1
    assert "entry 6" in anew.stderr


@pytest.mark.parametrize("content", [b"", b"{}\n", b"\xff\n", b"[1]\n"])
def test_an_export_that_is_none_is_no_whole_trail(root: Path, content: bytes) -> None:
    file = root / "export.jsonl"
    file.write_bytes(content)
    done = give("audit", "verify", str(file))
    assert done.exit_code == (1 if content else 0)
    assert give("audit", "verify", str(root / "none")).exit_code == 1
    assert give("audit", "verify", str(root)).exit_code == 1


# -- hostile words ---------------------------------------------------------------------------------

HOSTILE = st.one_of(
    st.text(min_size=1, max_size=40),
    st.sampled_from(
        ["\x1b[31mred", "a\r\nb", "../../etc", "'; DROP TABLE events; --", "%00", "\u202e"]
    ),
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(word=HOSTILE, which=st.integers(0, 6))
def test_no_word_breaks_a_command_or_reaches_the_terminal_as_it_is(
    root: Path, word: str, which: int
) -> None:
    commands = [
        ("token", "new", "--", word),
        ("token", "revoke", "--", word),
        ("send", "--", word, word, word),
        ("tail", "--no-follow", "--agent", word),
        ("trace", "--", word),
        ("agents", "--capability", word),
        ("tail", "--no-follow", "--correlation", word),
    ]
    if not (root / ".agentcanvas" / "agentcanvas.db").exists():
        give("token", "new", "first")
    done = give(*commands[which])
    assert done.exit_code in (0, 1, 2)
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert os.environ["NO_COLOR"]
