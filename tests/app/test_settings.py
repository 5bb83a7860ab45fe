"""Settings: which layer wins, who set what, and every mistake told at once with its place (D41)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.app.settings import (
    KEYS,
    WORKSPACE_FILE,
    Key,
    Layer,
    Origin,
    Settings,
    load_settings,
    user_file,
)
from agentcanvas.errors import SettingsError
from agentcanvas.protocol.limits import Limits

pytestmark = pytest.mark.req("D41")

ACP_CONFIG = Path(__file__).parents[1] / "protocol" / "examples" / "acp_config.yaml"


class Workspace:
    """A workspace and a home with settings files."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "workspace"
        self.home = folder / "home"
        self.file = self.root / WORKSPACE_FILE
        self.user_file = self.home / ".config" / "agentcanvas" / "config.yaml"
        self.root.mkdir()
        self.user_file.parent.mkdir(parents=True)

    def load(
        self,
        text: str | bytes = "",
        *,
        environ: Mapping[str, str] | None = None,
        flags: Mapping[str, object] | None = None,
    ) -> Settings:
        if text:
            self.file.write_bytes(text.encode() if isinstance(text, str) else text)
        return load_settings(
            self.root, environ={"HOME": str(self.home), **(environ or {})}, flags=flags
        )

    def problems(
        self,
        text: str | bytes = "",
        *,
        environ: Mapping[str, str] | None = None,
        flags: Mapping[str, object] | None = None,
    ) -> list[str]:
        """The problems without the path of the workspace, in the order they are told."""
        with pytest.raises(SettingsError) as caught:
            self.load(text, environ=environ, flags=flags)
        sentence = str(caught.value).replace(f"{self.root}/", "")
        first, *others = sentence.split("\n- ")
        if not others:
            return [first]
        assert first == f"There are {len(others)} problems in the settings:"
        return others


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


# --- layers and provenance ----------------------------------------------------------------------


def test_without_any_file_the_defaults_hold(workspace: Workspace) -> None:
    assert workspace.load() == Settings(Limits(), ())


@pytest.mark.req("L1")
def test_the_acp_block_of_the_document_is_taken_verbatim_beside_other_keys(
    workspace: Workspace,
) -> None:
    settings = workspace.load(ACP_CONFIG.read_text() + "queue:\n  messages: 500\n")
    assert settings.limits.acp == Limits().acp
    assert settings.limits.queue.messages == 500
    assert settings.origin("acp.timeouts.default") == Origin(
        "acp.timeouts.default", Layer.WORKSPACE_FILE, f"{workspace.file}:4:14"
    )


@pytest.mark.req("L1")
def test_a_changed_acp_block_reaches_the_limits(workspace: Workspace) -> None:
    text = ACP_CONFIG.read_text().replace("30000", "45000").replace("3600", "60")
    limits = workspace.load(text).limits
    assert limits.acp.timeouts.default_ms == 45_000
    assert limits.acp.performance.cache_ttl_s == 60


def test_each_layer_wins_over_the_ones_before_it(workspace: Workspace) -> None:
    key = "queue.messages"
    seen: list[tuple[int, Layer | None]] = []

    def look(settings: Settings) -> None:
        origin = settings.origin(key)
        layer = origin.layer if origin is not None else None
        seen.append((settings.limits.queue.messages, layer))

    look(workspace.load())
    workspace.user_file.write_text("queue: {messages: 1}")
    look(workspace.load())
    look(workspace.load("queue: {messages: 2}"))
    environ = {"AGENTCANVAS_QUEUE_MESSAGES": "3"}
    look(workspace.load(environ=environ))
    look(workspace.load(environ=environ, flags={key: 4}))
    assert seen == [
        (10_000, None),
        (1, Layer.USER_FILE),
        (2, Layer.WORKSPACE_FILE),
        (3, Layer.ENVIRONMENT),
        (4, Layer.FLAG),
    ]


def test_layers_are_merged_key_by_key_and_each_value_remembers_its_place(
    workspace: Workspace,
) -> None:
    workspace.user_file.write_text("heartbeat:\n  interval_s: 10\n  unavailable_s: 50\n")
    settings = workspace.load(
        "heartbeat:\n  interval_s: 20\n",
        environ={"AGENTCANVAS_DELIVERY_RETRIES": "5"},
        flags={"cli_turn.timeout_s": "1h", "cli_turn.silent_s": None},
    )
    assert settings.limits.heartbeat.interval_s == 20
    assert settings.limits.heartbeat.unavailable_s == 50
    assert {origin.key: origin.place for origin in settings.where} == {
        "heartbeat.interval_s": f"{workspace.file}:2:15",
        "heartbeat.unavailable_s": f"{workspace.user_file}:3:18",
        "delivery.retries": "AGENTCANVAS_DELIVERY_RETRIES",
        "cli_turn.timeout_s": "flag cli_turn.timeout_s",
    }
    assert settings.limits.cli_turn.timeout_s == 3_600


def test_a_wrong_value_in_a_lower_layer_is_told_even_if_a_higher_one_wins(
    workspace: Workspace,
) -> None:
    assert workspace.problems("queue: {messages: many}", flags={"queue.messages": 4}) == [
        'agentcanvas.yaml:1:19: queue.messages must be a whole number, not "many".'
    ]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"HOME": "/h"}, "/h/.config/agentcanvas/config.yaml"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x/agentcanvas/config.yaml"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": ""}, "/h/.config/agentcanvas/config.yaml"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "rel"}, "/h/.config/agentcanvas/config.yaml"),
        ({}, None),
        ({"HOME": ""}, None),
    ],
)
def test_the_user_file_is_where_xdg_says(environ: dict[str, str], expected: str | None) -> None:
    assert user_file(environ) == (expected and Path(expected))


def test_without_a_home_there_is_no_user_file(workspace: Workspace) -> None:
    assert load_settings(workspace.root, environ={}) == Settings()


# --- environment and flags ----------------------------------------------------------------------


def test_every_setting_has_a_variable_of_its_own() -> None:
    variables = [key.variable for key in KEYS.values()]
    assert len(set(variables)) == len(variables) == len(KEYS)
    assert KEYS["acp.timeouts.default"].variable == "AGENTCANVAS_ACP_TIMEOUTS_DEFAULT"
    assert KEYS["heartbeat.interval_s"].variable == "AGENTCANVAS_HEARTBEAT_INTERVAL_S"


@pytest.mark.parametrize("key", KEYS.values(), ids=lambda key: key.name)
def test_every_setting_can_be_set_by_file_variable_and_flag(tmp_path: Path, key: Key) -> None:
    workspace = Workspace(tmp_path)
    value = {
        bool: "false",
        str: f'"{key.choices[0]}"' if key.choices else "qwen claude",
        int: str(int(key.default)) if key.kind is int else "",
        float: "3.5",
    }[key.kind]
    nested = value
    for name in reversed(key.path):
        nested = f"{{{name}: {nested}}}"
    by_file = workspace.load(nested)
    workspace.file.unlink()
    plain = value.strip('"')
    by_variable = workspace.load(environ={key.variable: f" {plain} "})
    by_flag = workspace.load(flags={key.name: plain})
    assert by_file.limits == by_variable.limits == by_flag.limits
    assert [s.where[0].key for s in (by_file, by_variable, by_flag)] == [key.name] * 3


def test_names_are_one_text(workspace: Workspace) -> None:
    for said in ("cli: {order: 'qwen, claude'}", "cli: {order: qwen claude}"):
        assert workspace.load(said).limits.cli.order == "qwen claude"
    assert workspace.problems("cli: {order: 3}")[0].endswith(
        'must be names with spaces between them, not "3".'
    )


def test_a_variable_that_resembles_a_setting_is_taken_for_a_slip(workspace: Workspace) -> None:
    environ = {"AGENTCANVAS_HEARTBEAT_INTERVAL": "3", "AGENTCANVAS_QUEUE_MESAGES": "3"}
    assert workspace.problems(environ=environ) == [
        "AGENTCANVAS_HEARTBEAT_INTERVAL is not a setting; "
        "did you mean AGENTCANVAS_HEARTBEAT_INTERVAL_S?",
        "AGENTCANVAS_QUEUE_MESAGES is not a setting; did you mean AGENTCANVAS_QUEUE_MESSAGES?",
    ]


@pytest.mark.parametrize(
    "name", ["AGENTCANVAS_TASK_ID", "AGENTCANVAS_TOKEN", "AGENTCANVAS_HOME", "QUEUE_MESSAGES"]
)
def test_other_variables_are_left_alone(workspace: Workspace, name: str) -> None:
    assert workspace.load(environ={name: "x"}) == Settings()


def test_an_empty_variable_counts_as_unset(workspace: Workspace) -> None:
    assert workspace.load(environ={"AGENTCANVAS_QUEUE_MESSAGES": " "}) == Settings()


@pytest.mark.parametrize(
    ("variable", "text", "said"),
    [
        ("AGENTCANVAS_QUEUE_MESSAGES", "0", "must be between 1 and 1,000,000, not 0."),
        ("AGENTCANVAS_QUEUE_MESSAGES", "x", 'must be a whole number, not "x".'),
        ("AGENTCANVAS_ACP_TIMEOUTS_DEFAULT", "30", "is in milliseconds, and 30 of them"),
        ("AGENTCANVAS_ACP_SECURITY_REQUIRE_PERMISSIONS", "1", 'true or false, not "1".'),
    ],
)
def test_a_wrong_variable_is_named(
    workspace: Workspace, variable: str, text: str, said: str
) -> None:
    (problem,) = workspace.problems(environ={variable: text})
    assert problem.startswith(f"{variable} ")
    assert said in problem


def test_wrong_flags_are_named(workspace: Workspace) -> None:
    assert workspace.problems(flags={"queue.mesages": 3, "queue.messages": True}) == [
        "flag queue.mesages: queue.mesages is not a setting; did you mean queue.messages?",
        "flag queue.messages must be a whole number, not true",
    ]


# --- values and units ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "written", "value"),
    [
        ("heartbeat.interval_s", "20", 20),
        ("heartbeat.interval_s", "20.0", 20),
        ("heartbeat.interval_s", "20s", 20),
        ("heartbeat.interval_s", "'20 s'", 20),
        ("heartbeat.interval_s", "3000ms", 3),
        ("heartbeat.interval_s", "0.5m", 30),
        ("cli_turn.timeout_s", "45min", 2_700),
        ("cli_turn.timeout_s", "2h", 7_200),
        ("task.timeout_s", "1d", 86_400),
        ("acp.timeouts.default", "30000", 30_000),
        ("acp.timeouts.default", "30s", 30_000),
        ("acp.timeouts.default", "50ms", 50),
        ("acp.timeouts.default", "0.3s", 300),
        ("acp.retry.backoff_ms", "10", 10),
        ("acp.performance.cache_ttl", "1h", 3_600),
        ("acp.performance.cache_ttl", "0", 0),
        ("blob.inline_bytes", "32kB", 32_768),
        ("blob.inline_bytes", "32 KiB", 32_768),
        ("message.size_bytes", "2MB", 2_097_152),
        ("queue.messages", "30_000", 30_000),
        ("acp.retry.backoff_multiplier", "1.5", 1.5),
    ],
)
def test_a_quantity_is_a_number_in_the_unit_of_its_key_or_text_with_a_unit(
    workspace: Workspace, key: str, written: str, value: float
) -> None:
    nested = written
    for name in reversed(key.split(".")):
        nested = f"{{{name}: {nested}}}"
    found: object = msgspec.to_builtins(workspace.load(nested).limits)
    for name in key.split("."):
        assert isinstance(found, dict)
        found = found[name]
    assert found == value


@pytest.mark.parametrize(
    ("key", "written", "said"),
    [
        (
            "acp.timeouts.default",
            "30",
            'is in milliseconds, and 30 of them is suspiciously little: write 30000 or "30s" '
            'for seconds, or "30ms" if you mean it.',
        ),
        ("breaker.half_open_after_ms", "30", "suspiciously little"),
        (
            "heartbeat.interval_s",
            "30000",
            'must be between 1 and 3,600 seconds, not 30000; "30000ms" if you mean milliseconds.',
        ),
        ("heartbeat.interval_s", "0", "must be between 1 and 3,600 seconds, not 0."),
        ("heartbeat.interval_s", "-5", "must be between 1 and 3,600 seconds, not -5."),
        ("heartbeat.interval_s", "2h", "must be between 1 and 3,600 seconds, not 2h."),
        ("heartbeat.interval_s", "500ms", "takes whole seconds, and 500ms is 0.5."),
        ("heartbeat.interval_s", "1.5", "must be a whole number of seconds, not 1.5."),
        (
            "heartbeat.interval_s",
            "'30'",
            "must be a number, not text: write 30 without quotes.",
        ),
        (
            "heartbeat.interval_s",
            "30kB",
            'must be a number of seconds such as 30, "30s" or "5m", not "30kB".',
        ),
        ("heartbeat.interval_s", "soon", 'such as 30, "30s" or "5m", not "soon".'),
        ("heartbeat.interval_s", "true", 'such as 30, "30s" or "5m", not true.'),
        ("heartbeat.interval_s", "", 'such as 30, "30s" or "5m", not nothing.'),
        ("heartbeat.interval_s", "[30]", "not a list."),
        ("heartbeat.interval_s", "{s: 30}", "not a section."),
        ("heartbeat.interval_s", "2026-01-01", 'not "2026-01-01".'),
        ("heartbeat.interval_s", "!!int x", "has a value that cannot be read"),
        ("heartbeat.interval_s", "!secret x", "has a value that cannot be read"),
        ("heartbeat.interval_s", "9" * 5_000, "has a value that cannot be read"),
        ("heartbeat.interval_s", ".inf", "must be a whole number"),
        ("queue.messages", "10s", 'must be a whole number, not "10s".'),
        ("blob.inline_bytes", "64", ""),
        ("blob.inline_bytes", "2s", 'such as 65536 or "64kB", not "2s".'),
        ("acp.retry.backoff_multiplier", ".nan", "must be between 1 and 100, not nan."),
        ("acp.retry.backoff_multiplier", "0.5", "must be between 1 and 100, not 0.5."),
        ("acp.security.require_permissions", "yes", 'must be true or false, not "yes".'),
        ("acp.security.require_permissions", "1", 'must be true or false, not "1".'),
        ("acp.version", "2.0", 'must be text: write "2.0" in quotes.'),
        ("acp.version", "'1.0'", 'must be 2.0, not "1.0"'),
        ("acp.security.approval_threshold", "hihg", "did you mean high?"),
        ("acp.security.approval_threshold", "9", "must be one of critical, high, low, medium"),
    ],
)
def test_a_value_that_does_not_fit_is_told_with_what_to_write(
    workspace: Workspace, key: str, written: str, said: str
) -> None:
    *sections, leaf = key.split(".")
    text = "".join(f"{'  ' * depth}{name}:\n" for depth, name in enumerate(sections))
    text += f"{'  ' * len(sections)}{leaf}: {written}\n"
    if not said:
        assert workspace.load(text).where
        return
    (problem,) = workspace.problems(text)
    line = len(sections) + 1
    assert problem.startswith(f"agentcanvas.yaml:{line}:")
    assert f" {key} " in problem
    assert said in problem


def test_limits_that_contradict_each_other_are_told_at_the_place_that_set_them(
    workspace: Workspace,
) -> None:
    (problem,) = workspace.problems("heartbeat:\n  interval_s: 100\n")
    assert problem.startswith("agentcanvas.yaml:2:15: heartbeat.unavailable_s: 90 s is not longer")
    (problem,) = workspace.problems("queue: {}", flags={"cli_turn.silent_s": 9_999})
    assert problem.startswith("flag cli_turn.silent_s: cli_turn.silent_s: 9999 s is longer")


def test_a_refused_value_is_not_told_a_second_time_as_a_contradiction(
    workspace: Workspace,
) -> None:
    text = "heartbeat:\n  interval_s: 100\n  unavailable_s: long\n"
    assert len(workspace.problems(text)) == 1


@given(
    value=st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.from_regex(r"\A\d{1,6}(\.\d)?(ms|s|m|min|h|d|kB|MB)\Z")
    | st.lists(st.integers(), max_size=2)
)
def test_no_value_whatever_ends_in_anything_but_settings_or_a_sentence(value: object) -> None:
    for key in KEYS.values():
        try:
            taken = key.take_text(value) if isinstance(value, str) else key.take(value)
        except ValueError as wrong:
            taken = str(wrong)
            assert taken
        else:
            assert isinstance(taken, key.kind)


# --- files --------------------------------------------------------------------------------------


def test_all_problems_of_all_layers_are_told_at_once_in_the_order_of_the_layers(
    workspace: Workspace,
) -> None:
    workspace.user_file.write_text("queue: 3\n")
    told = workspace.problems(
        "acp:\n  timeouts:\n    defualt: 30000\n    low_priority: 60\nbrocker: {}\n",
        environ={"AGENTCANVAS_QUEUE_MESSAGES": "-1"},
        flags={"task.timeout_s": "x"},
    )
    assert [problem.split(" ")[0] for problem in told] == [
        f"{workspace.user_file}:1:8:",
        "agentcanvas.yaml:3:5:",
        "agentcanvas.yaml:4:19:",
        "agentcanvas.yaml:5:1:",
        "AGENTCANVAS_QUEUE_MESSAGES",
        "flag",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "heartbeat:\n  intervall_s: 3\n",
            "agentcanvas.yaml:2:3: heartbeat.intervall_s is not a setting; "
            "did you mean heartbeat.interval_s?",
        ),
        ("hartbeat: {}\n", "1:1: hartbeat is not a setting; did you mean heartbeat?"),
        ("interval_s: 3\n", "interval_s is not a setting here; did you mean heartbeat.interval_s?"),
        (
            "queue:\n  heartbeat.interval_s: 3\n",
            "2:3: queue.heartbeat.interval_s must be nested: write heartbeat: {interval_s: …}",
        ),
        (
            "acp.timeouts.default: 30000\n",
            "1:1: acp.timeouts.default must be nested: write acp: {timeouts: {default: …}}",
        ),
        ("zzz: 1\n", "1:1: zzz is not a setting; at the top there can be acp, blob, breaker,"),
        ("queue: {zzz: 1}\n", "1:9: queue.zzz is not a setting; in queue there can be messages"),
        ("queue: {messages: 1, messages: 2}\n", "1:22: queue.messages is there twice, first in"),
        ("queue: {}\nblob: {}\nqueue: {}\n", "3:1: queue is there twice, first in line 1; keep"),
        ("- a\n", "1:1: the file must be a section with keys, not a list"),
        ("hello\n", '1:1: the file must be a section with keys, not "hello"'),
        ("heartbeat: 30\n", '1:12: heartbeat must be a section with keys, not "30"'),
        ("heartbeat: [1]\n", "1:12: heartbeat must be a section with keys, not a list"),
        ("? [a]\n: 1\n", "1:3: a key must be a word"),
        ("1: 2\n", "1:1: 1 is not a setting"),
        ("<<: {queue: {}}\n", "1:1: << is not a setting"),
        ("queue:\n\tmessages: 3\n", "2:1: YAML is indented with spaces, not tabs"),
        ("queue: [1\n", "2:1: while parsing a flow sequence, expected ',' or ']'"),
        ("queue: 'x\n", "2:1: while scanning a quoted scalar"),
        ("queue: *x\n", "1:8: found undefined alias 'x'"),
        ("queue: {}\n---\nqueue: {}\n", "2:1: expected a single document"),
        ("queue: {}\n# \x01\n", "2:3: a control character is not allowed"),
        ("[" * 3_000, "1:33: this is nested deeper than any setting"),
        (b"queue:\n  # caf\xe9\n", "2:8: the file is not UTF-8 text; save it as UTF-8"),
        ("queue: {}".encode("utf-16"), "1:1: the file is not UTF-8 text"),
        (b"# " + b"x" * 262_144, "has 262,146 bytes; settings fit in 262,144"),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_a_file_that_is_wrong_is_told_with_line_and_column(
    workspace: Workspace, text: str | bytes, told: str
) -> None:
    (problem,) = workspace.problems(text)
    assert problem.startswith("agentcanvas.yaml")
    assert told in problem


@pytest.mark.parametrize(
    "text",
    [
        "# nothing but a comment\n",
        "\n\n",
        "---\n",
        "\ufeffqueue: {}\n",
        "heartbeat:\n  # interval_s: 10\n",
        "heartbeat:\nqueue: ~\n",
        "queue: {}\r\nblob: {}\r\n",
        "queue: &a {}\nblob: *a\ntask: &a {}\n",
    ],
)
def test_a_file_that_sets_nothing_is_fine(workspace: Workspace, text: str) -> None:
    assert workspace.load(text) == Settings()


def test_an_anchor_may_be_used_twice(workspace: Workspace) -> None:
    settings = workspace.load("task: {timeout_s: &t 60}\ncli_turn: {silent_s: *t}\n")
    assert settings.limits.task.timeout_s == settings.limits.cli_turn.silent_s == 60


def test_an_alias_to_its_own_section_ends(workspace: Workspace) -> None:
    (problem,) = workspace.problems("acp: &a\n  timeouts: {acp: *a}\n")
    assert "acp.timeouts.acp is not a setting" in problem


def test_a_folder_a_pipe_and_a_broken_link_in_place_of_the_file_are_told(
    workspace: Workspace,
) -> None:
    workspace.file.mkdir()
    assert workspace.problems() == ["agentcanvas.yaml is not a file; move it away or make it one."]
    workspace.file.rmdir()
    os.mkfifo(workspace.file)
    assert "is not a file" in workspace.problems()[0]
    workspace.file.unlink()
    workspace.file.symlink_to("nowhere.yaml")
    assert workspace.problems() == ["agentcanvas.yaml is a link to a file that does not exist."]
    workspace.file.unlink()
    workspace.file.symlink_to(workspace.file)
    assert workspace.problems()[0].startswith("agentcanvas.yaml cannot be read: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every file")
def test_a_file_that_may_not_be_read_is_told(workspace: Workspace) -> None:
    workspace.file.write_text("queue: {}")
    workspace.file.chmod(0)
    assert workspace.problems() == ["agentcanvas.yaml cannot be read: Permission denied."]


def test_a_link_to_a_file_is_followed(workspace: Workspace) -> None:
    (workspace.root / "other.yaml").write_text("queue: {messages: 7}")
    workspace.file.symlink_to("other.yaml")
    assert workspace.load().limits.queue.messages == 7


@given(text=st.text() | st.binary())
def test_no_file_whatever_ends_in_anything_but_settings_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, text: str | bytes
) -> None:
    folder = tmp_path_factory.mktemp("any")
    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    (folder / WORKSPACE_FILE).write_bytes(content)
    try:
        settings = load_settings(folder, environ={})
    except SettingsError as wrong:
        told = str(wrong)
    else:
        told = WORKSPACE_FILE
        assert settings == Settings()
    assert WORKSPACE_FILE in told


# --- the value ----------------------------------------------------------------------------------


def test_settings_are_described_by_a_json_schema_and_fit_it(workspace: Workspace) -> None:
    settings = workspace.load("queue: {messages: 7}")
    encoded = msgspec.json.encode(settings)
    jsonschema.validate(msgspec.json.decode(encoded), msgspec.json.schema(Settings))
    assert msgspec.json.decode(encoded, type=Settings) == settings


def test_every_leaf_of_the_limits_is_a_setting() -> None:
    def leaves(value: object, path: tuple[str, ...]) -> list[tuple[str, object]]:
        if not isinstance(value, dict):
            return [(".".join(path), value)]
        return [leaf for name, inner in value.items() for leaf in leaves(inner, (*path, name))]

    expected = dict(leaves(msgspec.to_builtins(Limits()), ()))
    assert {name: key.default for name, key in KEYS.items()} == expected


def test_a_settings_error_is_a_user_error_with_its_own_code(workspace: Workspace) -> None:
    with pytest.raises(SettingsError) as caught:
        workspace.load("- a")
    assert (caught.value.code, caught.value.category.value) == ("INVALID_SETTINGS", "user_error")


# --- the document -------------------------------------------------------------------------------

DOCUMENT = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")


def test_the_document_lists_every_setting_with_its_default_unit_and_range() -> None:
    def row(key: Key) -> str:
        default, allowed = f"{key.default}", f"{key.least:,} to {key.most:,}"
        if key.kind is bool:
            default, allowed = default.lower(), "true, false"
        elif key.choices:
            allowed = ", ".join(key.choices)
        elif key.kind is str:
            allowed = "names"
        else:
            default = f"{key.default:,}"
        return f"| `{key.name}` | {default} | {key.unit or '–'} | {allowed} |"  # noqa: RUF001 (dash)

    listed = [line for line in DOCUMENT.splitlines() if line.startswith("| `")]
    assert listed == [row(key) for key in KEYS.values()]


def test_the_file_in_the_document_is_accepted(workspace: Workspace) -> None:
    example = DOCUMENT.split("```yaml\n")[1].split("```")[0]
    settings = workspace.load(example)
    assert settings.limits.cli_turn.timeout_s == 2_700
    assert settings.limits.heartbeat.unavailable_s == 30


def test_the_mistakes_in_the_document_are_told_in_these_words(workspace: Workspace) -> None:
    told = DOCUMENT.split("```text\n")[1].split("```")[0].strip().split("\n- ")[1:]
    text = "heartbeat:\n  intervall_s: 3\nacp:\n  timeouts:\n    default: 30\n"
    environ = {"AGENTCANVAS_QUEUE_MESSAGES": "0"}
    assert workspace.problems(text, environ=environ) == told
