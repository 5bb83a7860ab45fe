"""Commands as a person gives them, in this process, with a fake office behind."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from agentcanvas.cli import app, offices
from tests.cli.fake_office import FakeOffice, opening


class Desk:
    """A workspace, an office, and a way to give commands."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root = root
        self._patch = patch
        patch.chdir(root)
        patch.setenv("COLUMNS", "100")
        patch.setenv("AGENTCANVAS_COMMAND", "cat")

    def give(self, office: FakeOffice, *words: str) -> Result:
        """Give a command; an error of ours is an exit code and a sentence, never an exception."""
        self._patch.setattr(offices, "open_office", opening(office))
        self._patch.setattr(offices, "serve_apart", partial(_note, office))
        result = CliRunner().invoke(app, list(words))
        assert result.exception is None or isinstance(result.exception, SystemExit), result
        assert "Traceback" not in result.output
        return result

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file


async def _note(office: FakeOffice, root: Path) -> None:
    office.calls.append(f"serve apart {root.name}")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    (tmp_path / ".agentcanvas").mkdir()
    return Desk(tmp_path, monkeypatch)
