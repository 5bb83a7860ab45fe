"""Memory is files that people edit: noted once, recalled by words, never through a link."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.errors import ResourceError
from agentcanvas.memory.notebook import MOST_RECALLED, Notebook

pytestmark = pytest.mark.req("F2", "D46")

NOON_MS = 1_771_502_400_000  # 2026-02-19T12:00:00Z
DAY_MS = 86_400_000


def noted(folder: Path, *entries: str, now_ms: int = NOON_MS) -> Notebook:
    book = Notebook(folder)
    for number, entry in enumerate(entries):
        book.note(entry, [f"step-{number}"], key=f"run/{now_ms}/{number}", now_ms=now_ms)
    return book


def test_a_note_is_an_item_of_the_day_with_its_sources(tmp_path: Path) -> None:
    path = Notebook(tmp_path).note("Soak\nfirst", ["step-1", "a  b"], key="k", now_ms=NOON_MS)
    assert path == tmp_path / "memory" / "2026-02-19.md"
    text = path.read_text()
    assert text.startswith("# 2026-02-19\n\n- Soak\n  first <!-- note ")
    assert text.endswith(" -->\n  - step-1\n  - a b\n")
    assert Notebook(tmp_path).recall("soak") == ("Soak\n  first\n  - step-1\n  - a b",)


def test_the_same_step_notes_once_however_often_it_is_carried_out(tmp_path: Path) -> None:
    noted(tmp_path, "one", "two")
    before = (tmp_path / "memory" / "2026-02-19.md").read_bytes()
    noted(tmp_path, "one", "two")
    assert (tmp_path / "memory" / "2026-02-19.md").read_bytes() == before


def test_runs_that_note_at_the_same_time_do_not_mix(tmp_path: Path) -> None:
    def one(number: int) -> None:
        Notebook(tmp_path).note(f"entry {number}", [], key=str(number), now_ms=NOON_MS)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(40)))
    text = (tmp_path / "memory" / "2026-02-19.md").read_text()
    assert text.count("# 2026-02-19") == 1
    assert sorted(re.findall(r"^- (entry \d+) <!--", text, re.MULTILINE)) == sorted(
        f"entry {number}" for number in range(40)
    )


def test_what_people_wrote_stays_and_is_recalled_too(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    page = tmp_path / "memory" / "2026-02-19.md"
    page.write_text("# Thursday\n\nSome prose.\n\n* We use tabs")
    (tmp_path / "MEMORY.md").write_text("# Memory\n\n- Tabs have a width of four\n\n## More\n")
    noted(tmp_path, "Tabs are shown as arrows")
    assert page.read_text().startswith("# Thursday\n\nSome prose.\n\n* We use tabs\n- Tabs are")
    assert [each.partition("\n")[0] for each in Notebook(tmp_path).recall("tabs")] == [
        "Tabs have a width of four",
        "Tabs are shown as arrows",
        "We use tabs",
    ]


def test_the_best_comes_first_and_common_words_do_not_count(tmp_path: Path) -> None:
    book = noted(tmp_path, "the plates", "hot plates and water", "with the cat")
    found = [each.partition("\n")[0] for each in book.recall("Water for the hot plates")]
    assert found == ["hot plates and water", "the plates"]


def test_the_latest_day_comes_first_and_the_number_is_bounded(tmp_path: Path) -> None:
    for day in range(30):
        noted(tmp_path, f"entry {day}", now_ms=NOON_MS + day * DAY_MS)
    found = Notebook(tmp_path).recall("")
    assert len(found) == MOST_RECALLED
    assert found[0].startswith("entry 29")


def test_nothing_is_there_and_nothing_is_recalled(tmp_path: Path) -> None:
    assert Notebook(tmp_path / "none").recall("anything") == ()


def test_links_are_neither_read_nor_written(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "2026-02-19.md").write_text("- secret plates\n")
    here = tmp_path / "here"
    here.mkdir()
    (here / "memory").symlink_to(other)
    (here / "MEMORY.md").symlink_to(other / "2026-02-19.md")
    assert Notebook(here).recall("plates") == ()
    with pytest.raises(ResourceError, match="is a link"):
        noted(here, "plates")
    (here / "memory").unlink()
    (here / "memory").mkdir()
    (here / "memory" / "2026-02-19.md").symlink_to(other / "2026-02-19.md")
    with pytest.raises(ResourceError, match="cannot be written"):
        noted(here, "plates")
    assert (other / "2026-02-19.md").read_text() == "- secret plates\n"


def test_what_is_no_text_file_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    os.mkfifo(tmp_path / "MEMORY.md")
    (tmp_path / "memory" / "2026-02-18.md").write_bytes(b"- caf\xe9 plates\n\xff")
    (tmp_path / "memory" / "2026-02-17.md").mkdir()
    assert Notebook(tmp_path).recall("plates") == ("caf\ufffd plates\n\ufffd",)


def test_a_folder_that_cannot_be_listed_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("- hot plates\n")
    (tmp_path / "memory").write_text("a file of that name")
    assert Notebook(tmp_path).recall("plates") == ("hot plates",)
    with pytest.raises(ResourceError, match="cannot be written"):
        noted(tmp_path, "plates")


def test_a_disk_that_is_full_is_said_with_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(ResourceError, match="No space left on device; make room"):
        noted(tmp_path, "plates")


@given(st.lists(st.text(max_size=60).filter(lambda text: text.strip()), min_size=1, max_size=6))
def test_whatever_is_noted_is_an_item_of_its_own(
    tmp_path_factory: pytest.TempPathFactory, entries: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("book")
    noted(folder, *entries)
    text = (folder / "memory" / "2026-02-19.md").read_bytes().decode()
    assert text.count("<!-- note ") == len(entries) + sum(e.count("<!-- note ") for e in entries)
    assert len([line for line in text.split("\n") if line.startswith("- ")]) == len(entries)
