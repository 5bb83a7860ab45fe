"""Reviewing in a real browser, on a real run: from the diff to the verdict, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.agents.runtime import Turn
from agentcanvas.runs import events as e
from tests.chaos.driving import payloads, tree_of
from tests.e2e import axe, ledger
from tests.e2e.browser import Page
from tests.e2e.ledger import Served, proposed

pytestmark = [pytest.mark.anyio, pytest.mark.req("U2")]

BUCKET = "ledger/limits/bucket.py"
LINES = "document.querySelectorAll('.diff-line').length > 3"


async def opened(page: Page, served: Served) -> None:
    """The review of the run, with its diff in sight."""
    await page.goto(served.link)
    await page.wait_for_text(".head", "Add rate limiting")
    await page.look(f"location.hash = '#/review/{served.run_id}'")
    await page.wait_for(LINES)


async def current(page: Page) -> str:
    """The text of the current row."""
    return str(
        await page.look("document.querySelector('.diff-row[data-cursor]')?.textContent ?? ''")
    )


async def rests(served: Served) -> None:
    async for _ in served.engine.events(served.run_id):
        pass


async def test_a_change_is_commented_sent_back_looked_at_again_applied_and_taken_back(
    page: Page, built_page: Path, tmp_path: Path
) -> None:
    async with proposed(tmp_path / "ledger", built_page) as served:
        await opened(page, served)
        await page.press("n n n")
        await page.wait_for_text(".diff-row[data-cursor]", BUCKET)
        await page.look("document.querySelector('.diff-scroll').focus()")
        await page.wait_for(
            "[...document.querySelectorAll('.diff-line')].find((one) =>"
            " one.textContent.includes('wait = (cost'))?.querySelector('.say').click() ?? true",
        )
        await page.wait_for("document.activeElement.matches('.thread textarea')")
        await page.type("What if the rate is 0?")
        await page.click(".thread-foot .button[data-look='primary']")
        await page.wait_for_text(".thread .said", "What if the rate is 0?")
        await page.wait_for_text(".verdict", "1 comment is sent along")

        await page.press("r")
        await page.type("Nearly.")
        await page.press("Enter")
        await page.wait_for_text(".rounds", "Sent back")
        await page.wait_for("document.querySelector('.verdict .button[data-look=apply]')")
        sent = payloads(
            [entry async for entry in served.engine.events(served.run_id, follow=False)],
            e.TurnStarted,
        )
        assert (
            f"Nearly.\n\n{BUCKET}:18\n> wait = (cost - self._tokens) / self.rate\nWhat if"
            in sent[-1].text
        )

        await page.wait_for_text(".seg button[aria-pressed=true]", "Since r1")
        await page.wait_for_text(".diff-line[data-sign='+']", "if self.rate else None")
        assert await page.texts(".tree-name .ends") == ["bucket.py"]
        await page.press("s")
        await page.wait_for("document.querySelectorAll('.tree-name').length === 5")

        await page.press("a Enter")
        await page.wait_for_text(".verdict", "Applied")
        assert "if self.rate else None" in served.text(BUCKET)
        await page.press("z Enter")
        await page.wait_for_text(".review-head .pill", "Undone")
        assert served.text(BUCKET) == ledger.BUCKET
        assert page.complaints == []


async def test_a_rejection_needs_a_reason_and_shows_it_afterwards(
    page: Page, built_page: Path, tmp_path: Path
) -> None:
    async with proposed(tmp_path / "ledger", built_page) as served:
        await opened(page, served)
        await page.press("x Enter")
        await page.wait_for_text(".field-error", "Give a reason")
        await page.type("Wrong approach.")
        await page.press("Enter")
        await page.wait_for_text(".review-head .pill", "Rejected")
        assert await page.look("document.activeElement.id") == "main", "where Tab goes on from"
        await page.wait_for_text(".queue-reason", "Wrong approach.")
        await page.wait_for_text(".verdict-why", "Wrong approach.")
        assert served.text(BUCKET) == ledger.BUCKET


@pytest.mark.req("D13")
async def test_only_the_files_and_hunks_that_are_included_land(
    page: Page, built_page: Path, tmp_path: Path
) -> None:
    async with proposed(tmp_path / "ledger", built_page) as served:
        await opened(page, served)
        await page.press("n t n t n t n t n j j t")
        await page.wait_for_text(".verdict", "Only the included part is applied: 1 of 5 files")
        await page.press("a Enter")
        await page.wait_for_text(".review-head .pill", "Applied")
        settings = served.text("settings.ini")
        assert ("option_2 = two" in settings, "option_29 = many" in settings) == (True, False)
        assert served.text(BUCKET) == ledger.BUCKET
        assert (served.root / "docs" / "guide.md").exists()


@pytest.mark.req("D13")
async def test_files_that_also_steer_the_checks_are_named_with_the_reason(
    page: Page, built_page: Path, tmp_path: Path
) -> None:
    text = ledger.flow(check="python3 ledger/limits/decision.py || true")
    async with proposed(tmp_path / "ledger", built_page, flow_text=text) as served:
        await opened(page, served)
        await page.wait_for_text(".review-side", "This change also edits how it is checked:")
        await page.wait_for_text(".review-side .safety", "decision.py is run by a check")
        assert page.complaints == []


@pytest.mark.req("C4")
async def test_a_red_change_lands_only_with_a_reason(
    page: Page, built_page: Path, tmp_path: Path
) -> None:
    check = "test ! -e ledger/limits/decision.py"
    async with proposed(
        tmp_path / "ledger", built_page, flow_text=ledger.flow(check=check)
    ) as served:
        await opened(page, served)
        await page.wait_for_text(".objections", "Failing: unit tests")
        await page.click(".verdict .button[data-look='apply']")
        await page.wait_for_text(".field-error", "To apply it anyway, give a reason.")
        await page.type("The check is out of date.")
        await page.press("Enter")
        await page.wait_for_text(".review-head .pill", "Applied")
        assert (served.root / "ledger" / "limits" / "decision.py").exists()


async def test_seen_marks_outlive_a_reload_and_fall_when_the_file_changes(
    page: Page, built_page: Path, tmp_path: Path
) -> None:
    async with proposed(tmp_path / "ledger", built_page) as served:
        await opened(page, served)
        await page.press("n n n v n v")
        await page.wait_for_text(".review-count", "2 of 5 seen")
        await page.look("location.reload()")
        await page.wait_for_text(".review-count", "2 of 5 seen")
        await page.wait_for(LINES)
        await page.press("r")
        await page.type("Again.")
        await page.press("Enter")
        await page.wait_for_text(".review-count", "1 of 5 seen")
        await page.wait_for_text(".file-head .badge", "Changed")


async def test_proposals_that_change_the_same_lines_are_told_in_the_queue(
    page: Page, built_page: Path, tmp_path: Path
) -> None:
    async with proposed(
        tmp_path / "l", built_page, flow_text=ledger.rivals(), by=ledger.rival
    ) as served:
        await opened(page, served)
        await page.wait_for_text(".queue-row[data-task=ada] .badge", "ben, 1 file")
        await page.wait_for_text(".queue-row[data-task=ben] .badge", "ada, 1 file")
        await page.wait_for_text(".safety", "Overlaps with ben: settings.ini")
        await page.press("]")
        await page.wait_for_text("#proposal-title", "ben's")
        await page.press("a Enter")
        await page.wait_for_text(".queue-row[data-task=ben] .badge", "Applied")
        await page.press("[")
        await page.wait_for_text(".safety", "Conflicts with the workspace")
        await page.wait_for_text(".objections", "It cannot be applied: settings.ini")


async def test_a_file_of_very_many_lines_waits_and_pictures_stand_beside_each_other(
    page: Page, built_page: Path, tmp_path: Path
) -> None:
    def both(turn: Turn) -> str:
        ledger.first(tree_of(turn))
        return ledger.lock_file(turn)

    async with proposed(tmp_path / "l", built_page, by=both) as served:
        await opened(page, served)
        loaded = (
            "[...document.querySelectorAll('.content-side img')].map((one) => one.naturalWidth)"
        )
        await page.wait_for(f"{loaded}.join() === '24,24'")
        await page.press("p p p p p p")
        await page.click(".tree-name[title='all.lock']")
        await page.wait_for_text(".content-note", "31,000 lines")
        await page.click(".content-note .button")
        await page.wait_for_text(".diff-line .code", "package 7")
        assert await page.look("document.querySelectorAll('.diff *').length") < 2000
        assert page.complaints == []


@pytest.mark.req("U5")
@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("g r", (".review-head .pill", "Waiting for you")),
        ("g r", (".diff-line .code", "monotonic")),
    ],
    ids=["whom it waits for", "the diff"],
)
async def test_from_the_link_two_keys_lead_to_what_is_asked(
    page: Page, built_page: Path, tmp_path: Path, first: str, expected: tuple[str, str]
) -> None:
    async with proposed(tmp_path / "l", built_page) as served:
        await page.goto(served.link)
        await page.wait_for_text(".head", "Add rate limiting")
        await page.wait_for("document.querySelector('#main .status')")
        await page.press(first)
        await page.wait_for_text(*expected)


async def test_on_a_phone_a_change_is_found_commented_and_decided_with_a_finger(
    page: Page, built_page: Path, tmp_path: Path
) -> None:
    async with proposed(tmp_path / "l", built_page) as served:
        await page.resize(400, 860)
        await opened(page, served)
        await page.click(".review-panels button:nth-child(2)")
        await page.click(".tree-name[title='settings.ini']")
        await page.wait_for_text(".diff-row[data-cursor]", "settings.ini")
        line = (
            "[...document.querySelectorAll('.diff-line')]"
            ".find((one) => one.textContent.includes('option_2 = two'))?.querySelector('.code')"
        )
        await page.wait_for(line)
        await page.look(f"{line}.click()")
        await page.click(".diff-row[data-cursor] .say")
        await page.wait_for("document.activeElement.matches('.thread textarea')")
        await page.type("Why?")
        in_sight = (
            "document.querySelector('.thread-foot .button[data-look=primary]')"
            ".getBoundingClientRect().bottom"
            " <= document.querySelector('.diff-scroll').getBoundingClientRect().bottom"
        )
        await page.wait_for(in_sight)
        await page.click(".thread-foot .button[data-look='primary']")
        await page.wait_for_text(".verdict", "1 comment is sent along")
        wide = "document.documentElement.scrollWidth <= innerWidth"
        assert await page.look(wide)
        await page.click(".verdict .button[data-look='warn']")
        await page.wait_for_text(".toast", "sent back")


@pytest.mark.req("U5")
async def test_on_a_small_desk_the_evidence_stands_beside_the_change(
    page: Page, built_page: Path, tmp_path: Path
) -> None:
    async with proposed(tmp_path / "ledger", built_page) as served:
        await page.resize(1024, 768)
        await opened(page, served)
        evidence, panels = page.tab.locator(".review-side"), page.tab.locator(".review-panels")
        for panel, shown in (("Files", ".review-tree"), ("Changes", ".diff")):
            await panels.get_by_text(panel).click()
            assert await page.tab.locator(shown).is_visible()
            assert await evidence.is_visible()
        assert not await panels.get_by_text("Evidence").is_visible()
        await page.resize(880, 768)
        assert not await evidence.is_visible()
        await panels.get_by_text("Evidence").click()
        assert await evidence.is_visible()
        await page.resize(1024, 768)
        assert await page.tab.locator(".diff").is_visible()


async def test_everything_is_within_reach_of_the_keyboard(
    page: Page, built_page: Path, tmp_path: Path
) -> None:
    async with proposed(tmp_path / "ledger", built_page) as served:
        await opened(page, served)
        await page.press("n n n j ArrowDown ArrowDown")
        row = await current(page)
        await page.press("c")
        await page.wait_for("document.activeElement.matches('.thread textarea')")
        await page.type("Why a float?")
        await page.press("Escape")
        await page.wait_for("!document.querySelector('.thread textarea')")
        assert await current(page) == row
        await page.press("u")
        await page.wait_for("document.querySelectorAll('.pair').length > 3")
        await page.press("u")
        await page.wait_for(LINES)
        await page.press("?")
        await page.wait_for_text("[role=dialog]", "Mark the file as seen, and go on")
        await page.press("Escape p p p")
        await page.wait_for_text(".diff-row[data-cursor]", "docs/limits.md")


@pytest.mark.parametrize("theme", ["light", "dark", "contrast"])
async def test_axe_finds_nothing_serious(
    page: Page, built_page: Path, tmp_path: Path, theme: str
) -> None:
    text = ledger.flow(reviewed_by="critic")
    async with proposed(tmp_path / "ledger", built_page, flow_text=text) as served:
        await opened(page, served)
        await page.look(f"document.documentElement.dataset.theme = '{theme}'")
        await page.wait_for_text(".thread", "divides by zero")
        assert await axe.findings(page) == []
        await page.resize(400, 860)
        await page.click(".review-panels button:nth-child(4)")
        await page.wait_for("document.querySelector('.review-side').offsetHeight > 0")
        assert await axe.findings(page) == []


EVIL = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>'


def hostile(turn: Turn) -> str:
    """Everything a page could be tricked with, wherever an agent may write."""
    tree = tree_of(turn)
    (tree / "ledger" / "evil.py").write_text(
        f"{EVIL}\nif admin:\u202e # \u2066 check\n\u001b[31mred\u001b[0m\n[x](javascript:hit=1)\n"
    )
    (tree / "ledger" / "<b onclick=hit=1>.py").write_text("javascript:window.hit=1\n")
    (tree / "ledger" / "<").mkdir()
    (tree / "ledger" / "<" / "script>.py").write_text("</script><script>window.hit=1\n")
    return f"{EVIL} [click](javascript:window.hit=1) \u001b]0;title\u0007 \u202edlrow"


def disguised(turn: Turn) -> str:
    """A name that reads as another one; the gate sends it back, and the page says what it is."""
    for name in ("\u202egnp.exe.py", "a.py\n+++ b.py", "\u001b[31mred.py", "<img src=x>\u202e.py"):
        (tree_of(turn) / "ledger" / name).write_text("x = 1\ny = 2\nz = 3\nlast = 4\n")
    return "A picture."


async def not_obeyed(page: Page) -> None:
    assert await page.look("window.hit") is None
    inside = "document.querySelectorAll('.review :is(script, img, iframe)').length"
    assert await page.look(inside) == 0
    links = await page.look("[...document.querySelectorAll('a')].map((one) => one.protocol)")
    assert "javascript:" not in links
    shown = await page.look("document.querySelector('.review').textContent")
    assert not set(shown) & set("\u202e\u2066\u001b\u0007")
    assert page.complaints == []


async def test_whatever_an_agent_writes_is_shown_and_never_obeyed(
    page: Page, built_page: Path, tmp_path: Path
) -> None:
    check = "printf '<script>window.hit=1</script> \\033[31mred\\033[0m \\033]0;t\\007'"
    text = ledger.flow(check=check)
    async with proposed(tmp_path / "l", built_page, flow_text=text, by=hostile) as served:
        await opened(page, served)
        await page.wait_for_text(".diff-line .code", EVIL)
        await page.wait_for_text(".diff-line .odd", "RLO")
        await page.wait_for_text(".diff-line .odd", "ESC")
        await page.wait_for_text(".file-path", "<b onclick=hit=1>.py")
        await page.wait_for_text(".file-path", "ledger/</script>.py")
        await page.click(".check-row summary")
        await page.wait_for_text(".output", "<script>window.hit=1</script> red")
        await page.wait_for_text(".output .odd", "BEL")
        await not_obeyed(page)


async def test_a_name_that_reads_as_another_is_shown_as_it_is(
    page: Page, built_page: Path, tmp_path: Path
) -> None:
    async with proposed(tmp_path / "l", built_page, by=disguised) as served:
        await opened(page, served)
        await page.wait_for_text(".file-path .odd", "RLO")
        await page.wait_for_text(".safety", "RLO")
        assert await page.texts(".file-path") == [
            "ledger/ESC[31mred.py",
            "ledger/<img src=x>RLO.py",
            "ledger/a.pyLF+++ b.py",
            "ledger/RLOgnp.exe.py",
        ]
        await not_obeyed(page)
