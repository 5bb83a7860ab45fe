"""The page in a real browser: live without a reload, nothing lost, nobody's place moved."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
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


@pytest.fixture
def server(built_page: Path) -> Iterator[CannedServer]:
    canned = CannedServer(built_page)
    serving = threading.Thread(target=canned.serve_forever, kwargs={"poll_interval": 0.02})
    serving.start()
    yield canned
    canned.cut_streams()
    canned.shutdown()
    serving.join()
    canned.server_close()


def shoot(page: Page, name: str) -> None:
    if SHOTS:
        page.shoot(Path(SHOTS) / f"{name}.png")


def opened_at_the_end(page: Page, server: CannedServer) -> None:
    page.goto(server.address)
    page.wait_for(LIVE)
    page.wait_for(AT_END)


def border(page: Page, selector: str) -> str:
    return str(page.look(f"getComputedStyle(document.querySelector('{selector}')).borderLeftColor"))


def token(page: Page, name: str) -> str:
    return str(
        page.look(
            "(() => { const probe = document.body.appendChild(document.createElement('i'));"
            f" probe.style.color = 'var({name})'; const seen = getComputedStyle(probe).color;"
            " probe.remove(); return seen; })()"
        )
    )


def test_cards_appear_live_without_a_reload(page: Page, server: CannedServer) -> None:
    server.happen(story.begin())
    opened_at_the_end(page, server)
    page.look("window.neverReloaded = true")

    server.happen(
        story.dispatch("T1", "Write `bucket.py`"),
        story.proposal("T1", "A bucket"),
        story.checks("T1", "passed", "pytest: 41 passed before, 43 after."),
        story.announce("A bucket", to_user=False),
        story.verdict("T1", Decision.APPLY, "Reads well"),
    )

    page.wait_for_text(".collab-card[data-event='task_dispatched'] h3", "Orchestrator → Coder")
    page.wait_for_text(".collab-card[data-event='proposal_submitted'] .facts", "3 files changed")
    page.wait_for_text(".collab-card[data-event='checks_run'] .facts", "tests: 5/5 passed")
    page.wait_for_text(".collab-card[data-event='announce'] .body", "A bucket")
    page.wait_for_text(
        ".collab-card[data-event='proposal_reviewed'][data-decision='apply'] h3",
        "Orchestrator: APPLY",
    )
    icons = ("🎯", "📦", "✅")
    assert [icon for icon in page.texts(".collab-card header .unseen") if icon in icons] == [
        "🎯",
        "📦",
        "✅",
        "✅",
    ]
    assert page.look("window.neverReloaded")
    assert page.complaints == []


def test_each_kind_of_card_has_the_colour_of_its_meaning(page: Page, server: CannedServer) -> None:
    server.happen(
        *story.whole(), story.verdict("T2", Decision.REJECT, "Too much"), story.end("enough")
    )
    page.resize(1280, 4000)
    opened_at_the_end(page, server)
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
    assert {selector: border(page, selector) for selector in meant} == {
        selector: token(page, name) for selector, name in meant.items()
    }


def test_a_stream_that_is_cut_loses_nothing_and_repeats_nothing(
    page: Page, server: CannedServer
) -> None:
    server.happen(story.begin())
    opened_at_the_end(page, server)
    for round_number in range(3):
        server.happen(story.note(f"before cut {round_number}"))
        page.wait_for_text(".line", f"before cut {round_number}")
        seen = server.head
        server.cut_streams()
        server.happen(story.note(f"missed {round_number}"), story.note(f"and more {round_number}"))
        page.wait_for_text(".line", f"and more {round_number}")
        assert server.asked_from[-1] == seen

    assert page.look(SEQS) == list(range(1, 11))
    assert server.snapshots == 1
    assert page.complaints == []


def test_another_history_is_read_from_its_beginning(page: Page, server: CannedServer) -> None:
    server.happen(story.begin(), story.note("of the old history"))
    opened_at_the_end(page, server)
    server.begin_anew("77aa", story.begin(), story.note("of the new history"))
    page.wait_for_text(".line", "of the new history")
    assert not any("of the old" in text for text in page.texts(".line"))
    server.happen(story.note("and it goes on"))
    page.wait_for_text(".line", "and it goes on")
    assert page.look(SEQS) == [1, 2, 3]


def test_the_end_is_followed_and_a_reader_above_it_is_never_moved(
    page: Page, server: CannedServer
) -> None:
    server.happen(story.begin(), *(story.warning(f"number {n}") for n in range(60)))
    opened_at_the_end(page, server)
    server.happen(story.warning("one more"))
    page.wait_for_text(".collab-card", "one more")
    assert page.look(AT_END)

    page.wheel(".timeline > .scroll", -900)
    page.wait_for("document.querySelector('.newer')")
    page.look(f"new Promise((done) => {{ {SCROLL}.onscrollend = done; setTimeout(done, 300); }})")
    place = page.look(f"{SCROLL}.scrollTop")
    server.happen(*(story.warning(f"later {n}") for n in range(12)))
    page.wait_for_text(".newer", "12 new")
    assert page.look(f"{SCROLL}.scrollTop") == place
    shoot(page, "reader-above")

    page.press("f")
    page.wait_for(AT_END)
    page.wait_for("!document.querySelector('.newer')")
    server.happen(story.warning("the last"))
    page.wait_for_text(".collab-card", "the last")
    assert page.look(AT_END)


def test_an_opened_message_is_not_carried_away(page: Page, server: CannedServer) -> None:
    text = "\n".join(f"line {n} of a long message" for n in range(80))
    server.happen(*story.whole(), story.turn("T4", text))
    opened_at_the_end(page, server)
    page.look("[...document.querySelectorAll('.line summary')].at(-1).focus()")
    page.press("Enter")
    page.wait_for("document.querySelector('.newer')")
    place = page.look(f"{SCROLL}.scrollTop")
    server.happen(story.note("meanwhile"))
    page.wait_for_text(".newer", "1 new")
    assert page.look(f"{SCROLL}.scrollTop") == place


def test_earlier_events_are_fetched_on_demand_and_move_nothing(
    page: Page, server: CannedServer
) -> None:
    server.happen(story.begin(), *(story.note(f"number {n}") for n in range(900)))
    opened_at_the_end(page, server)
    assert server.snapshots == 1
    before = page.look(f"{SCROLL}.scrollHeight")
    page.look(f"{SCROLL}.focus()")
    page.press("Home")
    page.wait_for("document.querySelector('.newer')")
    page.wait_for(f"{SCROLL}.scrollHeight > {before} + 3000")
    assert server.snapshots == 2
    page.wait_for_text(".line", "number 501")
    assert page.look("document.querySelectorAll('[data-seq]').length") < 200
    page.press("Home")
    page.wait_for(f"{SEQS}.includes(1) || ({SCROLL}.scrollTop = 0, false)")


def test_a_long_run_is_followed_to_its_end_and_stays_quick_to_draw(
    page: Page, server: CannedServer
) -> None:
    server.happen(story.begin(), *(story.note(f"number {n}") for n in range(250)))
    opened_at_the_end(page, server)
    for batch in range(5):
        server.happen(*(story.note(f"batch {batch}, {n}") for n in range(200)))
        page.wait_for_text(".line", f"batch {batch}, 199")
        page.wait_for(AT_END)
        assert page.look(f"{SEQS}.length") <= 200
    assert page.look("document.querySelector('.newer')") is None


def test_a_filter_and_a_search_show_what_fits_of_the_whole_run(
    page: Page, server: CannedServer
) -> None:
    server.happen(
        story.begin(), story.warning("a needle"), *(story.note(f"hay {n}") for n in range(900))
    )
    opened_at_the_end(page, server)
    page.press("/")
    page.type("needle")
    page.wait_for_text(".collab-card", "a needle")
    assert page.look("document.querySelectorAll('[data-seq]').length") == 1
    page.wait_for("location.hash.includes('q=needle')")
    page.look("[...document.querySelectorAll('.segment input')].at(-1).click()")
    page.wait_for("document.querySelectorAll('[data-seq]').length === 1")
    page.look("document.querySelectorAll('.segment input')[2].click()")
    page.wait_for_text(".empty", "Nothing here fits")


def test_everything_is_reached_by_tab_and_shows_its_focus(page: Page, server: CannedServer) -> None:
    server.happen(*story.whole())
    opened_at_the_end(page, server)
    stops = []
    for _ in range(34):
        page.press("Tab")
        stops.append(
            page.look(
                "(() => { const one = document.activeElement, look = getComputedStyle(one);"
                " const kind = one.className || one.localName;"
                " return [kind, look.outlineStyle, parseFloat(look.outlineWidth) >= 2]; })()"
            )
        )
    assert [kind for kind, _, _ in stops[:2]] == ["skip", "command-button"]
    assert "summary" in {kind for kind, _, _ in stops}
    assert all(style == "solid" and wide for _, style, wide in stops), stops
    shoot(page, "focus")


def test_the_skip_link_leads_past_the_header(page: Page, server: CannedServer) -> None:
    server.happen(story.begin())
    opened_at_the_end(page, server)
    page.press("Tab")
    page.press("Enter")
    page.wait_for("document.activeElement.id === 'main'")
    page.press("Tab")
    assert page.look("document.activeElement.closest('#main') !== null")


def test_whom_the_run_waits_for_comes_first_with_the_way_to_answer(
    page: Page, server: CannedServer
) -> None:
    server.happen(*story.whole())
    opened_at_the_end(page, server)
    page.wait_for_text(".waiting", "Waiting for you: Apply T2?")
    page.wait_for_text(".waiting .button", "Answer")
    assert page.texts(".head .pill") == ["Running"]
    page.wait_for("document.title.startsWith('(1) ')")
    assert page.texts(".needs-you .wide") == ["1 needs you"]
    statuses = "[...document.querySelectorAll('[data-task]')].map((one) => one.dataset.status)"
    assert page.look(statuses) == ["applied", "in_review", "dispatched"]
    shoot(page, "dark")

    server.happen(story.parked("Apply T2?"))
    page.wait_for_text(".head .pill", "Needs you")


def test_an_answered_question_stands_out_no_more_and_moves_nothing(
    page: Page, server: CannedServer
) -> None:
    server.happen(*story.whole())
    opened_at_the_end(page, server)
    asked = ".collab-card[data-event='person_asked']"
    page.wait_for_text(f"{asked}[data-open] .ask-form .button", "Apply")
    top = f'document.querySelector("{asked}").getBoundingClientRect().top'
    page.look(f"{SCROLL}.scrollTop -= 40")
    page.wait_for("document.querySelector('.newer')")
    before = page.look(top)
    server.happen(story.said("T2", "apply"))
    page.wait_for_text(f"{asked}:not([data-open]) .answer", "No answer is needed any more")
    page.wait_for_text(".waiting", "Working: Tester")
    assert page.look(top) == before


def test_light_and_dark_follow_the_reader(page: Page, server: CannedServer) -> None:
    server.happen(*story.whole())
    opened_at_the_end(page, server)
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.look(ground) == "rgb(18, 20, 25)"
    page.prefer("light")
    page.wait_for(f"{ground} === 'rgb(250, 251, 252)'")
    shoot(page, "light")


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_nothing_is_wider_than_the_window(page: Page, server: CannedServer, width: int) -> None:
    endless = "x" * 400
    server.happen(
        *story.whole(),
        story.dispatch(f"task-{endless[:60]}", endless),
        story.turn("T9", endless),
        story.proposal("T9", f"<img src=x onerror=alert(1)> {endless}"),
        story.ask("T9", endless),
    )
    page.resize(width, 740)
    opened_at_the_end(page, server)
    too_wide = page.look(
        "[...document.querySelectorAll('body *')]"
        ".filter((one) => one.getBoundingClientRect().right > innerWidth + 1)"
        ".filter((one) => !one.closest('select, .unseen, .toolbar'))"
        ".map((one) => one.outerHTML.slice(0, 120))"
    )
    assert too_wide == []
    assert page.look("document.documentElement.scrollWidth <= innerWidth")
    assert page.look(f"{SCROLL}.scrollWidth <= {SCROLL}.clientWidth")
    shoot(page, f"endless-{width}")


def test_a_phone_shows_the_same(page: Page, server: CannedServer) -> None:
    server.happen(*story.whole())
    page.resize(360, 740)
    opened_at_the_end(page, server)
    shoot(page, "narrow")
    assert page.look("document.querySelector('.timeline').clientHeight") > 300
    assert page.complaints == []


def test_a_workspace_without_runs_says_how_to_begin_and_shows_the_first_by_itself(
    page: Page, server: CannedServer
) -> None:
    page.goto(server.address)
    page.wait_for_text(".empty", "No run yet")
    page.wait_for(LIVE)
    assert page.texts(".workspace") == ["ledger-api"]
    shoot(page, "empty")
    server.happen(story.begin(), story.dispatch("T1", "Write it"))
    page.wait_for_text(".collab-card", "Write it")
    assert page.complaints == []


def test_a_server_that_is_gone_is_told_and_come_back_to(page: Page, server: CannedServer) -> None:
    server.happen(*story.whole())
    opened_at_the_end(page, server)
    shown = page.look(SEQS)
    server.refuses = True
    server.cut_streams()
    page.wait_for_text(".lost[role='alert']", "Connection lost")
    assert page.look(SEQS) == shown
    shoot(page, "lost")

    server.happen(story.note("while nobody listened"))
    server.refuses = False
    page.click(".lost .button")
    page.wait_for_text(".line", "while nobody listened")
    page.wait_for(f"{LIVE} && !document.querySelector('.lost')")


def test_another_run_can_be_picked_and_stays_after_a_reload(
    page: Page, server: CannedServer
) -> None:
    server.happen(story.begin("The older one"), story.end("done"), run="run_0")
    server.happen(story.begin("The newer one"))
    opened_at_the_end(page, server)
    page.wait_for_text(".line", "The newer one")
    page.click(".nav-recent a:last-child")
    page.wait_for_text(".line", "The older one")
    page.wait_for_text(".collab-card[data-event='run_ended']", "Run done")
    page.call("Page.reload")
    page.wait_for_text(".line", "The older one")
    assert page.look("location.hash") == "#/run/run_0"
