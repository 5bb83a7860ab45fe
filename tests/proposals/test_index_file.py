"""Git reads the indexes we write as we mean them, and we read those that git writes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentcanvas.errors import GitUnusable
from agentcanvas.proposals.index_file import read_index, write_index

_NAMES = st.binary(min_size=1, max_size=12).map(
    lambda name: b"n" + name.replace(b"\0", b"0").replace(b"/", b"_")
)
_PATHS = st.lists(_NAMES, min_size=1, max_size=3).map(b"/".join)
_IDS = st.binary(min_size=20, max_size=20).filter(any).map(bytes.hex)
_MODES = st.sampled_from(["100644", "100755", "120000"])
ENTRIES = st.dictionaries(_PATHS, st.tuples(_MODES, _IDS), max_size=20).filter(
    lambda entries: not any(other.startswith(path + b"/") for path in entries for other in entries)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("repo.git")
    subprocess.run(["git", "init", "-q", "--bare", str(made)], check=True)
    return made


def git(folder: Path, *words: str, stdin: bytes = b"") -> bytes:
    environment = {
        "PATH": os.environ["PATH"],
        "GIT_DIR": str(folder),
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
    done = subprocess.run(
        ["git", *words], input=stdin, env=environment, check=True, capture_output=True
    )
    return done.stdout


def as_lines(entries: dict[bytes, tuple[str, str]]) -> bytes:
    return b"".join(
        f"{mode} {oid} 0\t".encode() + path + b"\0" for path, (mode, oid) in sorted(entries.items())
    )


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries=ENTRIES)
def test_git_and_we_read_the_same_indexes(
    folder: Path, entries: dict[bytes, tuple[str, str]]
) -> None:
    index = folder / "index"
    index.write_bytes(write_index(entries))
    assert git(folder, "ls-files", "--stage", "-z") == as_lines(entries)
    index.unlink()
    git(
        folder,
        "-c",
        "index.version=2",
        "update-index",
        "-z",
        "--index-info",
        stdin=as_lines(entries),
    )
    assert read_index(index.read_bytes() if index.exists() else write_index({})) == entries


def test_a_path_longer_than_its_length_can_say_is_read_to_its_end(folder: Path) -> None:
    entries = {b"d/" * 2500 + b"file": ("100644", "1" * 40), b"z": ("100755", "2" * 40)}
    written = write_index(entries)
    assert read_index(written) == entries
    (folder / "index").write_bytes(written)
    assert git(folder, "ls-files", "--stage", "-z") == as_lines(entries)


@pytest.mark.parametrize("cut", [0, 11, 40, -1])
def test_a_damaged_index_is_refused(cut: int) -> None:
    written = write_index({b"a": ("100644", "1" * 40)})
    with pytest.raises(GitUnusable, match="damaged"):
        read_index(written[:cut])
    with pytest.raises(GitUnusable, match="damaged"):
        read_index(written.replace(b"a\0", b"b\0"))


def test_another_version_is_refused(folder: Path) -> None:
    lines = as_lines({b"a": ("100644", "1" * 40)})
    (folder / "index").unlink(missing_ok=True)
    git(folder, "-c", "index.version=4", "update-index", "-z", "--index-info", stdin=lines)
    with pytest.raises(GitUnusable, match="version 4, and not of 2"):
        read_index((folder / "index").read_bytes())
