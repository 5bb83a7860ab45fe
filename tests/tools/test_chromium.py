"""A browser for the tests from npm: whole or not there, and never without a reason.

npm is the edge that cannot exist in a test: a small program stands in for it.
"""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from hatch_build import PageNotBuilt
from tools.chromium import __main__ as fetching

NPM = """#!/bin/sh
[ -f package-lock.json ] || exit 9
case $1 in
ci) mkdir node_modules ;;
run) printf '#!/bin/sh\\n{program}\\n' >"$TMPDIR/chromium"; chmod +x "$TMPDIR/chromium" ;;
esac
"""


@pytest.fixture(autouse=True)
def on_linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PLACE", tmp_path / ".browser")
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    path = tmp_path / "npm"
    path.write_text(text)
    path.chmod(0o755)
    monkeypatch.setattr(fetching, "npm_command", lambda: ([str(path)], {"PATH": "/usr/bin:/bin"}))


def test_what_is_fetched_has_been_started_once_and_is_not_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm(tmp_path, monkeypatch, NPM.format(program="echo Chromium"))
    assert fetching.main() == 0
    assert (tmp_path / ".browser" / "chromium").exists()
    assert not (tmp_path / ".browser" / "node_modules").exists()
    npm(tmp_path, monkeypatch, "#!/bin/sh\nexit 1\n")
    assert fetching.main() == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#!/bin/sh\necho npm error code ENETUNREACH; exit 1\n", "npm error code ENETUNREACH"),
        (NPM.format(program="echo libnss3.so: no such file; exit 127"), "libnss3.so: no such file"),
    ],
)
def test_without_a_network_or_a_library_there_is_none_and_the_reason_is_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    reason: str,
) -> None:
    npm(tmp_path, monkeypatch, text)
    assert fetching.main() == 1
    assert f"no browser could be fetched: {reason}" in capsys.readouterr().err
    assert not (tmp_path / ".browser").exists()


def test_without_node_or_on_another_machine_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none() -> None:
        raise PageNotBuilt("Building the page needs Node")

    monkeypatch.setattr(fetching, "npm_command", none)
    assert fetching.main() == 1
    assert "needs Node" in capsys.readouterr().err
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert fetching.main() == 1
    assert "none to fetch for this machine" in capsys.readouterr().err
