"""The commands as a person uses them: what they print, and how they end."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentcanvas.cli import main

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "tests" / "protocol" / "examples"


def run(*words: str, stdin: bytes = b"", cwd: Path = ROOT) -> subprocess.CompletedProcess[bytes]:
    program = [sys.executable, "-c", "from agentcanvas.cli import main; main()"]
    env = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    return subprocess.run(
        [*program, *words], input=stdin, capture_output=True, check=False, cwd=cwd, env=env
    )


def test_a_valid_message_ends_with_0_and_names_its_dialect() -> None:
    done = run("message", "check", str(EXAMPLES / "acp_command.json"))
    assert done.returncode == 0
    assert "ACP task.assign, orchestrator → code-agent  valid" in done.stdout.decode()


def test_an_invalid_message_ends_with_1_and_names_every_field() -> None:
    done = run("message", "check", str(EXAMPLES / "invalid_mac_trace.json"))
    said = done.stdout.decode()
    assert done.returncode == 1
    for field in ("from", "to", "timestamp", "payload"):
        assert f"/{field}  Missing required field: {field}" in said


def test_strict_mode_refuses_what_lenient_mode_notes() -> None:
    file = str(EXAMPLES / "mac_task_request.json")
    assert run("message", "check", file).returncode == 0
    assert run("message", "check", "--strict", file).returncode == 1


def test_json_output_is_one_object_a_message_also_from_a_jsonl_file() -> None:
    done = run("message", "check", "--json", str(EXAMPLES / "s22_chain.jsonl"))
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert [report["kind"] for report in reports] == [
        "task.assign",
        "ack",
        "task.progress",
        "task.complete",
    ]
    assert all(report["valid"] for report in reports)


@pytest.mark.parametrize(
    "data",
    [b"", b"not json", b"[]", b'{"type": "X"}', b"\xff\xfe", b"[" * 200, b"x" * 1_048_577],
    ids=["empty", "text", "array", "type", "utf-8", "deep", "large"],
)
def test_garbage_on_standard_input_is_a_verdict_not_a_traceback(data: bytes) -> None:
    done = run("message", "check", "-", stdin=data)
    assert done.returncode == 1
    assert "not valid" in done.stdout.decode()
    assert b"Traceback" not in done.stderr + done.stdout


def test_a_missing_file_ends_with_2_and_a_sentence() -> None:
    done = run("message", "check", "nowhere.json")
    assert done.returncode == 2
    assert b"cannot read nowhere.json" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_translation_there_and_back_is_the_same_message() -> None:
    file = EXAMPLES / "mac_task_request.json"
    there = run("message", "translate", "--to", "spec022", str(file))
    assert json.loads(there.stdout)["message_type"] == "task_assignment"
    back = run("message", "translate", "--to", "mac", "-", stdin=there.stdout)
    assert json.loads(back.stdout) == json.loads(file.read_text())


def test_a_translation_of_garbage_is_one_sentence() -> None:
    done = run("message", "translate", "--to", "mac", "-", stdin=b'{"type": "TASK_REQUEST"}')
    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr.decode().startswith("agentcanvas: Missing required field:")


def test_the_schema_folder_is_fresh_and_a_stale_one_is_told(tmp_path: Path) -> None:
    assert run("schema", "--check", "schema").returncode == 0
    copy = shutil.copytree(ROOT / "schema", tmp_path / "schema")
    (copy / "mac.schema.json").write_text("{}")
    stranger = (copy / "acp.schema.json").read_text()
    (copy / "old.schema.json").write_text(stranger)
    (copy / "theirs.json").write_text("{}")
    done = run("schema", "--check", str(copy))
    assert done.returncode == 1
    assert b"mac.schema.json is out of date" in done.stderr
    assert b"old.schema.json is not exported any more" in done.stderr
    assert b"theirs.json" not in done.stderr


def test_the_demo_shows_the_conversation_and_loses_nothing() -> None:
    done = run("demo", "--dialects")
    assert done.returncode == 0
    assert "6 messages; 6 of them were translated there and back" in done.stdout.decode()


def test_a_missing_store_is_one_sentence_with_the_next_step(tmp_path: Path) -> None:
    done = run("store", "check", cwd=tmp_path)
    assert done.returncode == 1
    assert b"There is no store at" in done.stderr
    assert b"Traceback" not in done.stderr


def test_where_the_locale_has_no_letters_a_program_reads_utf_8(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "assert sys.stdout.encoding != 'utf-8', sys.stdout.encoding\n"
        "from agentcanvas.cli import main\n"
        "main()\n"
    )
    plain = {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code, "doctor"],
        env={"PATH": "", "HOME": str(tmp_path), **plain},
        capture_output=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.stderr == b""
    assert "→" in done.stdout.decode()


def test_a_terminal_without_the_letters_shows_question_marks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.BytesIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, "ascii", write_through=True))
    monkeypatch.setattr(sys, "argv", ["agentcanvas", "message", "check", "→"])
    with pytest.raises(SystemExit):
        main()
    sys.stdout.write("red → green\n")
    assert shown.getvalue().endswith(b"red ? green\n")


def test_version_and_help_say_what_there_is() -> None:
    assert run("--version").stdout.startswith(b"agentcanvas ")
    said = run("--help").stdout.decode()
    for command in ("demo", "message", "schema", "store"):
        assert command in said
    assert run("mesage").returncode == 2


def readme_commands() -> list[str]:
    text = (ROOT / "README.md").read_text() + (ROOT / "docs" / "protocol.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith(".venv/bin/agentcanvas ")]


@pytest.mark.parametrize("line", readme_commands())
def test_the_commands_in_the_documents_work_as_written(line: str) -> None:
    assert run(*line.removeprefix(".venv/bin/agentcanvas ").split()).returncode == 0


def test_the_python_in_the_protocol_document_works_as_written() -> None:
    text = (ROOT / "docs" / "protocol.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(code, "protocol.md", "exec"), {})
