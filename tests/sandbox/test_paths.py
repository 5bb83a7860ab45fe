"""Which names are refused, and where the folders of a sandbox are (S1, S3)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.errors import PathRefused
from agentcanvas.sandbox.paths import (
    claim_sandbox_paths,
    get_sandbox_paths,
    internal_folder,
    sanitised,
    shown,
    workspace_relative,
)
from tests.sandbox.conftest import RUN

pytestmark = pytest.mark.req("S1", "S3")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../x", "'..'"),
        ("a/../../x", "'..'"),
        ("a/..", "'..'"),
        ("/etc/passwd", "absolute"),
        ("\\\\server\\share", "absolute"),
        ("C:\\x", "absolute"),
        ("c:/x", "absolute"),
        ("", "not the name of a file"),
        (".", "not the name of a file"),
        ("a\0b", "not the name of a file"),
        (".git/config", "internal folder .git/"),
        ("sub/.git/hooks/x", "internal folder .git/"),
        (".GIT/config", "internal folder .GIT/"),
        (".git /config", "internal folder"),
        (".git./config", "internal folder"),
        ("git~1/config", "internal folder git~1/"),
        (".git::$INDEX_ALLOCATION/config", "internal folder"),
        (".g\u200cit/config", "internal folder"),
        (".agentcanvas/server.json", "internal folder .agentcanvas/"),
        ("node_modules/x", "internal folder node_modules/"),
        ("packages/a/node_modules/x", "internal folder node_modules/"),
        ("dist/bundle.js", "internal folder dist/"),
        ("./dist", "internal folder dist/"),
    ],
)
def test_a_name_that_leads_astray_is_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(PathRefused) as refusal:
        workspace_relative(name)
    assert reason in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("src/app.py", b"src/app.py"),
        ("./src//app.py", b"src/app.py"),
        ("folder/", b"folder"),
        ("..hidden", b"..hidden"),
        (".gitignore", b".gitignore"),
        (".github/x.yml", b".github/x.yml"),
        ("src/dist/code.py", b"src/dist/code.py"),
        ("a b/ü😀", "a b/ü😀".encode()),
        (b"odd\xff", b"odd\xff"),
    ],
)
def test_a_name_inside_the_workspace_is_taken(name: str | bytes, plain: bytes) -> None:
    assert workspace_relative(name) == plain


@given(st.lists(st.sampled_from(["a", "..", ".", "", "/", "\\", ".git", "C:"]), max_size=6))
def test_a_taken_name_never_leads_out(parts: list[str]) -> None:
    try:
        plain = workspace_relative("/".join(parts))
    except PathRefused:
        return
    assert not plain.startswith(b"/")
    assert b".." not in plain.split(b"/")
    assert internal_folder(plain) is None


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("custom:coder-1", "custom_coder-1"),
        ("a b/c", "a_b_c"),
        ("../..", ".._.."),
        ("..", "__"),
        (".", "_"),
        ("ü", "_"),
        ("plain-1.x_y", "plain-1.x_y"),
    ],
)
def test_an_agent_id_becomes_a_folder_name(agent: str, name: str) -> None:
    assert sanitised(agent) == name


def test_a_very_long_agent_id_still_fits_a_folder_name() -> None:
    one, other = "x" * 300 + "1", "x" * 300 + "2"
    assert len(sanitised(one)) < 255
    assert sanitised(one) != sanitised(other)


def test_an_empty_agent_id_is_refused() -> None:
    with pytest.raises(PathRefused, match="empty"):
        sanitised("")


@pytest.mark.parametrize("other", ["a_b", "A:B", "a/b"])
def test_ids_that_clash_get_folders_of_their_own(tmp_path: Path, other: str) -> None:
    first = claim_sandbox_paths(tmp_path, RUN, "a:b")
    second = claim_sandbox_paths(tmp_path, RUN, other)
    assert first.root.name == "a_b"
    assert second.root.name.casefold().startswith("a_b-")
    assert claim_sandbox_paths(tmp_path, RUN, "a:b") == first
    assert get_sandbox_paths(tmp_path, RUN, other) == second


def test_the_folders_are_where_the_layout_says(tmp_path: Path) -> None:
    paths = get_sandbox_paths(tmp_path, RUN, "custom:coder-1")
    root = tmp_path / ".agentcanvas/sandboxes" / RUN / "custom_coder-1"
    assert paths.input_dir == root / "input"
    assert paths.work_dir == root / "work"
    assert paths.proposal_dir == root / "proposal"
    assert not root.exists(), "asking where it is makes nothing"


@pytest.mark.parametrize(
    "run", ["run_1", "../x", "run_20260219_100000/..", "", "RUN_20260219_100000"]
)
def test_a_run_id_of_another_form_is_refused(tmp_path: Path, run: str) -> None:
    with pytest.raises(PathRefused, match="run_YYYYMMDD_HHMMSS"):
        get_sandbox_paths(tmp_path, run, "a")


def test_a_name_that_is_not_text_can_still_be_shown() -> None:
    assert shown(b"caf\xe9 \xc3\xa9") == "caf\\xe9 é"
