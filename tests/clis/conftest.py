"""The programs that ``tools/clis.sh`` has installed, and a model server for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.model_server.server import KEY, ModelServer, model_server

INSTALLED = Path(__file__).parents[2] / ".clis"
KEY_ENV = "STUB_MODEL_KEY"

Need = Callable[..., None]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.clis)


@pytest.fixture
def need(monkeypatch: pytest.MonkeyPatch) -> Need:
    """Put CLIs on the PATH, or skip with the reason."""

    def need(*names: str) -> None:
        missing = [name for name in names if not (INSTALLED / name / ".version").exists()]
        if missing:
            pytest.skip(f"{', '.join(missing)} not installed; run: make clis")
        folders = [str(INSTALLED / name / "bin") for name in ("node", *names)]
        monkeypatch.setenv("PATH", os.pathsep.join([*folders, os.environ["PATH"]]))

    monkeypatch.setenv(KEY_ENV, KEY)
    return need


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server
