"""The page in a real browser: live without a reload, nothing lost, nobody's place moved."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agentcanvas.proposals.model import Decision
from tests.e2e import story
from tests.e2e.browser import Page
from tests.e2e.canned import CannedServer

pytestmark = pytest.mark.req("V1")

SHOTS = os.environ.get("AGENTCANVAS_SHOTS")

SCROLL = "document.querySelector('.timeline > .scroll')"
AT_END = f"{SCROLL} && {SCROLL}.scrollHeight - {SCROLL}.clientHeight - {SCROLL}.scrollTop < 2"
LIVE = "document.querySelector('.connection')?.dataset.state === 'live'"
SEQS = "[...document.querySelectorAll('[data-seq]')].map((one) => Number(one.dataset.seq))"


async def shoot(page: Page, name: str) -> None:
    if SHOTS:
        await page.shoot(Path(SHOTS) / f"{name}.png")


async def opened_at_the_end(page: Page, server: CannedServer) -> None:
    await page.goto(server.address)
    await page.wait_for(LIVE)
    await page.wait_for(AT_END)


async def border(page: Page, selector: str) -> str:
    return str(
        await page.look(f"getComputedStyle(document.querySelector('{selector}')).borderLeftColor")
    )


async def token(page: Page, name: str) -> str:
    return str(
        await page.look(
            "(() => { const probe = document.body.appendChild(document.createElement('i'));"
            f" probe.style.color = 'var({name})'; const seen = getComputedStyle(probe).color;"
            " probe.remove(); return seen; })()"
        )
    )


async def test_cards_appear_live_without_a_reload(page: Page, server: CannedServer) -> None:
    server.happen(story.begin())
    await opened_at_the_end(page, server)
    await page.look("window.neverReloaded = true")

    server.happen(
        story.dispatch("T1", "Write `bucket.py`"),
        story.proposal("T1", "A bucket"),
        story.checks("T1", "passed", "pytest: 41 passed before, 43 after."),
        story.announce("A bucket", to_user=False),
        story.verdict("T1", Decision.APPLY, "Reads well"),
    )

    await page.wait_for_text(
        ".collab-card[data-event='task_dispatched'] h3", "Orchestrator → Coder"
    )
    await page.wait_for_text(
        ".collab-card[data-event='proposal_submitted'] .facts", "3 files changed"
    )
    await page.wait_for_text(".collab-card[data-event='checks_run'] .facts", "tests: 5/5 passed")
    await page.wait_for_text(".collab-card[data-event='announce'] .body", "A bucket")
    await page.wait_for_text(
        ".collab-card[data-event='proposal_reviewed'][data-decision='apply'] h3",
        "Orchestrator: APPLY",
    )
    icons = ("🎯", "📦", "✅")
    assert [icon for icon in await page.texts(".collab-card header .unseen") if icon in icons] == [
        "🎯",
        "📦",
        "✅",
        "✅",
    ]
    assert await page.look("window.neverReloaded")
    assert page.complaints == []


async def test_each_kind_of_card_has_the_colour_of_its_meaning(
    page: Page, server: CannedServer
) -> None:
    server.happen(
        *story.whole(), story.verdict("T2", Decision.REJECT, "Too much"), story.end("enough")
    )
    await page.resize(1280, 4000)
    await opened_at_the_end(page, server)
    card = '.collab-card[data-event="{}"]'.format
    reviewed = '.collab-card[data-event="proposal_reviewed"][data-decision="{}"]'.format
    meant = {
        card("task_dispatched"): "--secondary",
        card("proposal_submitted"): "--warn",
        card("announce"): "--accent",
        card("person_asked"): "--warn",
        reviewed("apply"): "--ok",
        reviewed("reject"): "--danger",
        reviewed("revise"): "--warn",
    }
    assert {selector: await border(page, selector) for selector in meant} == {
        selector: await token(page, name) for selector, name in meant.items()
    }


async def test_a_stream_that_is_cut_loses_nothing_and_repeats_nothing(
    page: Page, server: CannedServer
) -> None:
    server.happen(story.begin())
    await opened_at_the_end(page, server)
    for round_number in range(3):
        server.happen(story.note(f"before cut {round_number}"))
        await page.wait_for_text(".line", f"before cut {round_number}")
        seen = server.head
        server.cut_streams()
        server.happen(story.note(f"missed {round_number}"), story.note(f"and more {round_number}"))
        await page.wait_for_text(".line", f"and more {round_number}")
        assert server.asked_from[-1] == seen

    assert await page.look(SEQS) == list(range(1, 11))
    assert server.snapshots == 1
    assert page.complaints == []


async def test_another_history_is_read_from_its_beginning(page: Page, server: CannedServer) -> None:
    server.happen(story.begin(), story.note("of the old history"))
    await opened_at_the_end(page, server)
    server.begin_anew("77aa", story.begin(), story.note("of the new history"))
    await page.wait_for_text(".line", "of the new history")
    assert not any("of the old" in text for text in await page.texts(".line"))
    server.happen(story.note("and it goes on"))
    await page.wait_for_text(".line", "and it goes on")
    assert await page.look(SEQS) == [1, 2, 3]


async def test_the_end_is_followed_and_a_reader_above_it_is_never_moved(
    page: Page, server: CannedServer
) -> None:
    server.happen(story.begin(), *(story.warning(f"number {n}") for n in range(60)))
    await opened_at_the_end(page, server)
    server.happen(story.warning("one more"))
    await page.wait_for_text(".collab-card", "one more")
    assert await page.look(AT_END)

    await page.wheel(".timeline > .scroll", -900)
    await page.wait_for("document.querySelector('.newer')")
    await page.look(
        f"new Promise((done) => {{ {SCROLL}.onscrollend = done; setTimeout(done, 300); }})"
    )
    place = await page.look(f"{SCROLL}.scrollTop")
    server.happen(*(story.warning(f"later {n}") for n in range(12)))
    await page.wait_for_text(".newer", "12 new")
    assert await page.look(f"{SCROLL}.scrollTop") == place
    await shoot(page, "reader-above")

    await page.press("f")
    await page.wait_for(AT_END)
    await page.wait_for("!document.querySelector('.newer')")
    server.happen(story.warning("the last"))
    await page.wait_for_text(".collab-card", "the last")
    assert await page.look(AT_END)


async def test_an_opened_message_is_not_carried_away(page: Page, server: CannedServer) -> None:
    text = "\n".join(f"line {n} of a long message" for n in range(80))
    server.happen(*story.whole(), story.turn("T4", text))
    await opened_at_the_end(page, server)
    await page.look("[...document.querySelectorAll('.line summary')].at(-1).focus()")
    await page.press("Enter")
    await page.wait_for("document.querySelector('.newer')")
    place = await page.look(f"{SCROLL}.scrollTop")
    server.happen(story.note("meanwhile"))
    await page.wait_for_text(".newer", "1 new")
    assert await page.look(f"{SCROLL}.scrollTop") == place


async def test_earlier_events_are_fetched_on_demand_and_move_nothing(
    page: Page, server: CannedServer
) -> None:
    server.happen(story.begin(), *(story.note(f"number {n}") for n in range(900)))
    await opened_at_the_end(page, server)
    assert server.snapshots == 1
    before = await page.look(f"{SCROLL}.scrollHeight")
    await page.look(f"{SCROLL}.focus()")
    await page.press("Home")
    await page.wait_for("document.querySelector('.newer')")
    await page.wait_for(f"{SCROLL}.scrollHeight > {before} + 3000")
    assert server.snapshots == 2
    await page.wait_for_text(".line", "number 501")
    assert await page.look("document.querySelectorAll('[data-seq]').length") < 200
    await page.press("Home")
    await page.wait_for(f"{SEQS}.includes(1) || ({SCROLL}.scrollTop = 0, false)")


async def test_a_long_run_is_followed_to_its_end_and_stays_quick_to_draw(
    page: Page, server: CannedServer
) -> None:
    server.happen(story.begin(), *(story.note(f"number {n}") for n in range(250)))
    await opened_at_the_end(page, server)
    for batch in range(5):
        server.happen(*(story.note(f"batch {batch}, {n}") for n in range(200)))
        await page.wait_for_text(".line", f"batch {batch}, 199")
        await page.wait_for(AT_END)
        assert await page.look(f"{SEQS}.length") <= 200
    assert await page.look("document.querySelector('.newer')") is None


async def test_a_filter_and_a_search_show_what_fits_of_the_whole_run(
    page: Page, server: CannedServer
) -> None:
    server.happen(
        story.begin(), story.warning("a needle"), *(story.note(f"hay {n}") for n in range(900))
    )
    await opened_at_the_end(page, server)
    await page.press("/")
    await page.type("needle")
    await page.wait_for_text(".collab-card", "a needle")
    assert await page.look("document.querySelectorAll('[data-seq]').length") == 1
    await page.wait_for("location.hash.includes('q=needle')")
    await page.look("[...document.querySelectorAll('.segment input')].at(-1).click()")
    await page.wait_for("document.querySelectorAll('[data-seq]').length === 1")
    await page.look("document.querySelectorAll('.segment input')[2].click()")
    await page.wait_for_text(".empty", "Nothing matches")


async def test_everything_is_reached_by_tab_and_shows_its_focus(
    page: Page, server: CannedServer
) -> None:
    server.happen(*story.whole())
    await opened_at_the_end(page, server)
    stops = []
    for _ in range(34):
        await page.press("Tab")
        stops.append(
            await page.look(
                "(() => { const one = document.activeElement, look = getComputedStyle(one);"
                " const kind = one.className || one.localName;"
                " return [kind, look.outlineStyle, parseFloat(look.outlineWidth) >= 2]; })()"
            )
        )
    assert [kind for kind, _, _ in stops[:2]] == ["skip", "command-button"]
    assert "summary" in {kind for kind, _, _ in stops}
    assert all(style == "solid" and wide for _, style, wide in stops), stops
    await shoot(page, "focus")


async def test_the_skip_link_leads_past_the_header(page: Page, server: CannedServer) -> None:
    server.happen(story.begin())
    await opened_at_the_end(page, server)
    await page.press("Tab")
    await page.press("Enter")
    await page.wait_for("document.activeElement.id === 'main'")
    await page.press("Tab")
    assert await page.look("document.activeElement.closest('#main') !== null")


async def test_whom_the_run_waits_for_comes_first_with_the_way_to_answer(
    page: Page, server: CannedServer
) -> None:
    server.happen(*story.whole())
    await opened_at_the_end(page, server)
    await page.wait_for_text(".waiting", "Waiting for you: Apply T2?")
    await page.wait_for_text(".waiting .button", "Answer")
    assert await page.texts(".head .pill") == ["Running"]
    await page.wait_for("document.title.startsWith('(1) ')")
    assert await page.texts(".needs-you .wide") == ["1 needs you"]
    statuses = "[...document.querySelectorAll('[data-task]')].map((one) => one.dataset.status)"
    assert await page.look(statuses) == ["applied", "in_review", "dispatched"]
    await shoot(page, "dark")

    server.happen(story.parked("Apply T2?"))
    await page.wait_for_text(".head .pill", "Needs you")


async def test_an_answered_question_stands_out_no_more_and_moves_nothing(
    page: Page, server: CannedServer
) -> None:
    server.happen(*story.whole())
    await opened_at_the_end(page, server)
    asked = ".collab-card[data-event='person_asked']"
    await page.wait_for_text(f"{asked}[data-open] .ask-form .button", "Apply")
    top = f'document.querySelector("{asked}").getBoundingClientRect().top'
    await page.look(f"{SCROLL}.scrollTop -= 40")
    await page.wait_for("document.querySelector('.newer')")
    before = await page.look(top)
    server.happen(story.said("T2", "apply"))
    await page.wait_for_text(f"{asked}:not([data-open]) .answer", "No answer needed any more")
    await page.wait_for_text(".waiting", "Working: Tester")
    assert await page.look(top) == before


async def test_light_and_dark_follow_the_reader(page: Page, server: CannedServer) -> None:
    server.happen(*story.whole())
    await opened_at_the_end(page, server)
    ground = "getComputedStyle(document.body).backgroundColor"
    assert await page.look(ground) == "rgb(18, 20, 25)"
    await page.prefer("light")
    await page.wait_for(f"{ground} === 'rgb(250, 251, 252)'")
    await shoot(page, "light")


@pytest.mark.parametrize("width", [360, 768, 1280])
async def test_nothing_is_wider_than_the_window(
    page: Page, server: CannedServer, width: int
) -> None:
    endless = "x" * 400
    server.happen(
        *story.whole(),
        story.dispatch(f"task-{endless[:60]}", endless),
        story.turn("T9", endless),
        story.proposal("T9", f"<img src=x onerror=alert(1)> {endless}"),
        story.ask("T9", endless),
    )
    await page.resize(width, 740)
    await opened_at_the_end(page, server)
    too_wide = await page.look(
        "[...document.querySelectorAll('body *')]"
        ".filter((one) => one.getBoundingClientRect().right > innerWidth + 1)"
        ".filter((one) => !one.closest('select, .unseen, .toolbar'))"
        ".map((one) => one.outerHTML.slice(0, 120))"
    )
    assert too_wide == []
    assert await page.look("document.documentElement.scrollWidth <= innerWidth")
    assert await page.look(f"{SCROLL}.scrollWidth <= {SCROLL}.clientWidth")
    await shoot(page, f"endless-{width}")


async def test_the_toolbar_is_one_line_on_any_desk_and_in_any_language(
    page: Page, server: CannedServer
) -> None:
    server.happen(*story.whole())
    await opened_at_the_end(page, server)
    heights = {}
    for language in ("en", "ko", "zh"):
        prefs = json.dumps({"language": language})
        await page.look(f"localStorage.setItem('agentcanvas.prefs', '{prefs}')")
        await page.reload()
        await page.wait_for(f"document.documentElement.lang === '{language}' && {AT_END}")
        for width in (1024, 1280, 1366, 1440, 400):
            await page.resize(width, 800)
            height = "document.querySelector('.toolbar').offsetHeight"
            heights[language, width] = await page.look(height)
    assert {where: height for where, height in heights.items() if height > 48} == {}
    assert page.complaints == []


async def test_where_the_kinds_do_not_fit_side_by_side_they_are_a_list(
    page: Page, server: CannedServer
) -> None:
    server.happen(*story.whole())
    await opened_at_the_end(page, server)
    await page.tab.get_by_label("Kind").and_(page.tab.locator("select")).select_option("Checks")
    await page.wait_for_text(".collab-card[data-event='checks_run']", "48 after")
    assert await page.tab.locator(".collab-card").count() == 3
    await page.resize(1600, 800)
    assert await page.role("radio", "Checks").is_checked()


async def test_a_phone_shows_the_same(page: Page, server: CannedServer) -> None:
    server.happen(*story.whole())
    await page.resize(360, 740)
    await opened_at_the_end(page, server)
    await shoot(page, "narrow")
    assert await page.look("document.querySelector('.timeline').clientHeight") > 300
    assert page.complaints == []


async def test_a_workspace_without_runs_says_how_to_begin_and_shows_the_first_by_itself(
    page: Page, server: CannedServer
) -> None:
    await page.goto(server.address)
    await page.wait_for_text(".empty", "No runs yet")
    await page.wait_for(LIVE)
    assert await page.texts(".workspace") == ["ledger-api"]
    await shoot(page, "empty")
    server.happen(story.begin(), story.dispatch("T1", "Write it"))
    await page.wait_for_text(".collab-card", "Write it")
    assert page.complaints == []


async def test_a_server_that_is_gone_is_told_and_come_back_to(
    page: Page, server: CannedServer
) -> None:
    server.happen(*story.whole())
    await opened_at_the_end(page, server)
    shown = await page.look(SEQS)
    server.refuses = True
    server.cut_streams()
    await page.wait_for_text(".lost[role='alert']", "Connection lost")
    assert await page.look(SEQS) == shown
    await shoot(page, "lost")
    await page.look("location.hash = '#/transcript'")
    await page.wait_for_text(".empty", "Cannot load the transcript")

    server.happen(story.note("while nobody listened"))
    server.refuses = False
    await page.click(".lost .button")
    await page.wait_for_text(".empty", "has not said anything yet")
    await page.look("location.hash = '#/run'")
    await page.wait_for_text(".line", "while nobody listened")
    await page.wait_for(f"{LIVE} && !document.querySelector('.lost')")


async def test_another_run_can_be_picked_and_stays_after_a_reload(
    page: Page, server: CannedServer
) -> None:
    server.happen(story.begin("The older one"), story.end("done"), run="run_0")
    server.happen(story.begin("The newer one"))
    await opened_at_the_end(page, server)
    await page.wait_for_text(".line", "The newer one")
    await page.click(".nav-recent a:last-child")
    await page.wait_for_text(".line", "The older one")
    await page.wait_for_text(".collab-card[data-event='run_ended']", "Run done")
    await page.reload()
    await page.wait_for_text(".line", "The older one")
    assert await page.look("location.hash") == "#/run/run_0"
