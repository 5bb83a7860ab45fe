"""What tokens cost where nobody says it: a dated table, the user's own over it, never invented."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from agentcanvas.app.prices import NAME, load_prices
from agentcanvas.errors import SettingsError
from agentcanvas.protocol.records import Usage

pytestmark = pytest.mark.req("V2")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "agentcanvas").mkdir()
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def own(environ: dict[str, str], text: str) -> None:
    Path(environ["XDG_CONFIG_HOME"], "agentcanvas", NAME).write_text(text)


def usage(model: str, **more: int) -> Usage:
    known = Usage(model=model, input_tokens=1_000_000, output_tokens=100_000)
    return structs.replace(known, **more)


def test_the_table_that_comes_along_has_a_date_and_prices(environ: dict[str, str]) -> None:
    table = load_prices(environ)
    assert table.as_of
    assert table.estimate(usage("gpt-5")) == pytest.approx(1.25 + 1.0)
    assert table.estimate(usage("gpt-5", cache_read=400_000)) == pytest.approx(0.75 + 0.05 + 1.0)


@pytest.mark.parametrize(
    "model", ["claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4-5", "Claude-Sonnet-4-5@1"]
)
def test_dated_versions_and_prefixes_cost_the_same(environ: dict[str, str], model: str) -> None:
    table = load_prices(environ)
    assert table.estimate(usage(model)) == table.estimate(usage("claude-sonnet-4-5"))


@pytest.mark.parametrize("model", ["gpt-50", "unheard-of", ""])
def test_an_unknown_model_has_no_price(environ: dict[str, str], model: str) -> None:
    assert load_prices(environ).estimate(usage(model)) is None
    assert load_prices(environ).estimate(Usage()) is None


def test_the_users_prices_win_and_add(environ: dict[str, str]) -> None:
    own(environ, '[models]\n"gpt-5" = {input = 2, output = 0}\n"mine" = {input = 1, output = 1}\n')
    table = load_prices(environ)
    assert table.estimate(usage("gpt-5")) == 2.0
    assert table.estimate(usage("mine")) == pytest.approx(1.1)
    assert table.estimate(usage("gpt-5-mini")) is not None


@pytest.mark.parametrize(
    "text", ["[models", "[models]\nx = 3\n", '[models]\n"x" = {input = -1, output = 1}\n', "y = 1"]
)
def test_a_table_that_cannot_be_read_is_told_with_its_path(
    environ: dict[str, str], text: str
) -> None:
    own(environ, text)
    with pytest.raises(SettingsError, match=rf"{NAME} cannot be read: .*US dollars a million"):
        load_prices(environ)
