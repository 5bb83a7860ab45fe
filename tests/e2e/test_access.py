"""Nobody is kept out: axe finds nothing serious in any view; strangers' text stays text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentcanvas.proposals.model import Decision
from agentcanvas.protocol import records as r
from agentcanvas.runs import events as e
from tests.e2e import story
from tests.e2e.browser import Page
from tests.e2e.canned import CannedServer

AXE = Path(__file__).parents[2] / "ui" / "node_modules" / "axe-core" / "axe.min.js"
VIEWS = ("runs", "run", "run?by=task", "review", "inbox", "transcript", "report")
FINDINGS = """
axe.run(document, {resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']})
  .then(({violations}) => violations
    .filter(({impact}) => impact === 'serious' || impact === 'critical')
    .map(({id, nodes}) => [id, nodes.map(({html, failureSummary}) => [html.slice(0, 160),
      failureSummary.slice(0, 300)])]))
"""
HOSTILE = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
    "[link](javascript:window.hacked=3) \x1b[31mred\x1b[0m \u202egnp.exe {{7*7}} </style>"
)


async def show(page: Page, view: str) -> None:
    await page.look(f"location.hash = '#/{view}'")
    name = view.partition("?")[0]
    await page.wait_for(
        f"document.querySelector('#main').dataset.view === '{name}'"
        " && document.querySelector('#main').children.length > 0"
        " && !document.querySelector('#main .loading')"
    )


@pytest.mark.req("U5")
@pytest.mark.parametrize("theme", ["light", "dark", "contrast"])
async def test_axe_finds_nothing_serious_in_any_view(
    page: Page, server: CannedServer, theme: str
) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make ui")
    server.happen(*story.whole(), story.verdict("T2", Decision.REJECT, "Too much"))
    await page.goto(server.address)
    await page.look(f"localStorage.setItem('agentcanvas.prefs', '{{\"theme\":\"{theme}\"}}')")
    await page.reload()
    await page.wait_for_text(".collab-card", "Too much")
    await page.look(AXE.read_text(encoding="utf-8") + "; true")
    found: dict[str, Any] = {}
    for view in VIEWS:
        await show(page, view)
        found[view] = await page.look(FINDINGS)
    for key, name in (("?", "help"), ("Control+k", "commands")):
        await page.press(key)
        await page.wait_for("document.querySelector('[role=dialog]')")
        found[name] = await page.look(FINDINGS)
        await page.press("Escape")
        await page.wait_for("!document.querySelector('[role=dialog]')")
    assert {view: bad for view, bad in found.items() if bad} == {}


def hostile_run() -> tuple[e.RunEvent, ...]:
    """Every field that an agent, a flow or a file name can fill, filled badly."""
    member = e.Member("coder-1", HOSTILE, HOSTILE)
    return (
        e.RunStarted(
            actor="engine",
            provenance=e.Provenance.USER_INPUT,
            payload=e.Start(HOSTILE, HOSTILE, (member,)),
        ),
        story.dispatch(HOSTILE, HOSTILE),
        story.turn("T1", HOSTILE),
        story.progress("T1", HOSTILE),
        story.answer("T1", HOSTILE),
        story.proposal("T1", HOSTILE),
        story.checks("T1", HOSTILE, HOSTILE),
        story.announce(HOSTILE, to_user=True),
        story.verdict("T1", Decision.REVISE, HOSTILE),
        story.warning(HOSTILE),
        story.note(HOSTILE),
        e.ProposalLanded(
            actor="engine",
            provenance=e.Provenance.SYSTEM,
            payload=e.Landed(HOSTILE, (HOSTILE, "a/../b")),
        ),
        story.ask("T1", HOSTILE),
    )


def hostile_talk() -> tuple[r.TranscriptEvent, ...]:
    """Every kind of thing that an agent can say or do, as its program's output could fake it."""
    at: dict[str, Any] = {"ts": 1_794_838_920_000, "seq": 0}
    tool_input = msgspec.Raw(msgspec.json.encode({"command": HOSTILE, HOSTILE: [HOSTILE]}))
    return (
        r.SessionEvent(session_id=HOSTILE, model=HOSTILE, **at),
        r.TextEvent(text=f"{HOSTILE}\n\n```\n{HOSTILE}\n```", **at),
        r.ThinkingEvent(text=HOSTILE, **at),
        r.ToolCallEvent(name=HOSTILE, call_id="1", input=tool_input, **at),
        r.ToolResultEvent(call_id="1", output=HOSTILE, exit_code=1, failed=True, **at),
        r.FileChangeEvent(path=HOSTILE, status=r.ChangeStatus.MODIFIED, **at),
        r.RetryEvent(attempt=1, reason=HOSTILE, **at),
        r.ErrorEvent(error_class=r.FailureClass.UNKNOWN, message=HOSTILE, **at),
        r.NetworkEvent(method=HOSTILE, host=HOSTILE, port=1, allowed=False, reason=HOSTILE, **at),
        r.RawEvent(line=HOSTILE, **at),
        r.ResultEvent(text=HOSTILE, **at),
    )


@pytest.mark.req("U2")
async def test_what_strangers_write_is_shown_as_text_and_nothing_else(
    page: Page, server: CannedServer
) -> None:
    server.happen(*hostile_run())
    server.transcript = hostile_talk()
    server.report = f"# {HOSTILE}\n\n| a |\n|---|\n| {HOSTILE} |\n\n{HOSTILE}\n"
    await page.resize(1280, 3000)
    await page.goto(server.address)
    await page.wait_for_text(".collab-card", "<script>")
    for view in VIEWS:
        await show(page, view)
        if view == "transcript":
            await page.click(".transcript label:has([type=checkbox])")
            await page.wait_for_text(".transcript .raw", "<script>")
        await page.look("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        await page.look("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
        state = await page.look(
            """({
              hacked: window.hacked ?? null,
              elements: document.querySelectorAll('#page script, #main img').length,
              links: [...document.querySelectorAll('a[href]')].map((one) => one.protocol)
                .filter((protocol) => protocol === 'javascript:').length,
              turned: [...document.querySelectorAll('#page *')]
                .filter((one) => !one.children.length)
                .filter((one) => /[\\u202a-\\u202e\\u001b]/.test(one.textContent))
                .map((one) => one.outerHTML.slice(0, 200)),
            })"""
        )
        assert state == {"hacked": None, "elements": 0, "links": 0, "turned": []}, view
    assert json.loads(await page.look("JSON.stringify(document.title)")).count("\u202e") == 0
    # The canned server has no patches to show.
    assert [one for one in page.complaints if "404" not in one] == []


async def test_an_editors_theme_colours_the_page(page: Page, server: CannedServer) -> None:
    await page.goto(server.address)
    await page.wait_for_text(".empty", "No runs yet")
    await page.look(
        "document.documentElement.style.setProperty('--vscode-editor-background', 'rgb(1, 2, 3)')"
    )
    assert await page.look("getComputedStyle(document.body).backgroundColor") == "rgb(1, 2, 3)"
    assert page.complaints == []
