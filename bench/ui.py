"""The page in a real browser: long runs, large patches, many events, and what is fetched first.

The server and its store are real; the browser draws without a graphics card. Needs the built page
(``make ui``) and a Chromium or Chrome.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from agentcanvas.app.demo import make_folder
from agentcanvas.app.office import PROJECTIONS, open_premises
from agentcanvas.app.server import ServerInfo, serve_beside
from agentcanvas.app.workspace import store_path
from agentcanvas.runs import events as e
from agentcanvas.store import Store
from bench.harness import Contender, Contest, Figure, at_most, times_worse
from bench.long_runs import a_long_run
from tests.e2e.browser import Browser, Page, find_browser, launched
from tests.e2e.conftest import BUILT
from tests.e2e.scene import scene

SHORT, LONG = 500, 50_000
SMALL, LARGE = 200, 20_000
EVENTS_A_SECOND = 100
ROWS = "document.querySelector('.timeline [data-seq]')"
LINES = "document.querySelectorAll('.diff-line').length > 5"
CARDS = "document.querySelectorAll('.timeline [data-seq]').length"
FRAMES = """
new Promise((done) => {
  const times = [];
  let last = performance.now();
  (function frame(now) {
    times.push(now - last);
    last = now;
    if (times.length < %d) requestAnimationFrame(frame);
    else done(times.sort((a, b) => a - b)[Math.floor(times.length * 0.95)]);
  })(last);
})
"""

Work = Callable[[], Awaitable[object]]
Opener = Callable[[], AbstractAsyncContextManager[Work]]
Look = Callable[[Page], Awaitable[object]]


def contests(*, quick: bool) -> Iterator[Contest]:
    """The bars of the page."""
    program = find_browser()
    if program is None or not (BUILT / "index.html").exists():
        sys.stderr.write("ui: needs a browser (tools/browser.sh) and the built page (make ui)\n")
        return
    with TemporaryDirectory(prefix="agentcanvas-bench-") as name:
        places = count()

        def place() -> Path:
            return Path(name) / str(next(places))

        def run_of(events: int, work: Look) -> Opener:
            return lambda: long_run(program, place(), events, work)

        yield Contest(
            name="a run opens",
            baseline=f"{SHORT} events",
            contenders=[
                Contender.opened(f"{SHORT} events", run_of(SHORT, _see(ROWS))),
                Contender.opened(
                    f"{LONG:,} events",
                    run_of(LONG, _see(ROWS)),
                    bar=times_worse(3, than=f"{SHORT} events"),
                ),
            ],
        )
        yield Contest(
            name="rows that are drawn of a long run",
            figure=Figure("rows", better="lower"),
            contenders=[
                Contender.opened(
                    f"{LONG:,} events", run_of(LONG, _see(ROWS, CARDS)), bar=at_most(200)
                )
            ],
        )
        yield Contest(
            name="a patch opens",
            baseline=f"{SMALL} lines",
            contenders=[
                Contender.opened(f"{SMALL} lines", lambda: patch(program, place(), SMALL)),
                Contender.opened(
                    f"{LARGE:,} lines",
                    lambda: patch(program, place(), LARGE),
                    bar=times_worse(2.5, than=f"{SMALL} lines"),
                ),
            ],
        )
        frames = 60 if quick else 240
        yield Contest(
            name="95 of 100 frames are drawn within",
            baseline="idle",
            figure=Figure("ms", better="lower"),
            contenders=[
                Contender.opened("idle", lambda: frames_at(program, place(), 0, frames)),
                Contender.opened(
                    f"{EVENTS_A_SECOND} events/s",
                    lambda: frames_at(program, place(), EVENTS_A_SECOND, frames),
                    bar=times_worse(1.5, than="idle"),
                ),
            ],
        )
        yield Contest(
            name="scripts before the first view is there, gzipped",
            figure=Figure("kB", better="lower"),
            contenders=[Contender("the Run view", initial_kb, bar=at_most(260))],
        )


def _see(what: str, figure: str = "0") -> Look:
    async def look(page: Page) -> object:
        await page.wait_for(what)
        return await page.look(figure)

    return look


@asynccontextmanager
async def served(folder: Path, events: int) -> AsyncIterator[tuple[ServerInfo, Store]]:
    """A workspace with one run of so many events that has ended."""
    root = make_folder(folder)
    store_path(root).parent.mkdir(exist_ok=True)
    async with await Store.open(store_path(root), projections=PROJECTIONS) as store:
        rows = list(a_long_run(events))
        stream = rows[0][0]
        ended = e.RunEnded(
            actor="engine", provenance=e.Provenance.SYSTEM, payload=e.End("done", done=True)
        )
        rows.append((stream, e.kind_of(ended), e.to_json(ended)))
        for start in range(0, len(rows), 1000):
            await store.append_many(rows[start : start + 1000])
    async with (
        open_premises(root) as (engine, hub),
        serve_beside(engine, hub.store, root, port=0, static=BUILT, hub=hub) as info,
    ):
        yield info, hub.store


@asynccontextmanager
async def long_run(program: str, folder: Path, events: int, work: Look) -> AsyncIterator[Work]:
    """Open a run of so many events, over and over, each time in a tab that knows nothing."""
    async with served(folder, events) as (info, _), launched(program) as browser:
        yield partial(_in_a_tab, browser, f"{info.link}#/run/run_{events}", work)


@asynccontextmanager
async def patch(program: str, folder: Path, lines: int) -> AsyncIterator[Work]:
    """Open a proposal with so many new lines."""
    async with scene(folder, BUILT) as stage, launched(program) as browser:
        run_id = await stage.solo(command=f"seq 1 {lines} > numbers.txt")
        await stage.until_it_rests(run_id)
        address = f"{stage.info.link}#/review/{run_id}?task=task-1"
        yield partial(_in_a_tab, browser, address, _see(LINES))


@asynccontextmanager
async def frames_at(
    program: str, folder: Path, events_a_second: int, frames: int
) -> AsyncIterator[Work]:
    """How long frames take while so many events arrive."""
    async with served(folder, SHORT) as (info, store), launched(program) as browser:
        page = await browser.open()
        await page.goto(f"{info.link}#/run/run_{SHORT}")
        await page.wait_for(ROWS)

        async def work() -> object:
            async with anyio.create_task_group() as tasks:
                if events_a_second:
                    tasks.start_soon(_happen, store, events_a_second)
                figure = await page.look(FRAMES % frames)
                tasks.cancel_scope.cancel()
            return figure

        yield work


async def _happen(store: Store, a_second: int) -> None:
    for number in count():
        note = e.Noted(
            actor="w", provenance=e.Provenance.SYSTEM, payload=e.Note(f"number {number}")
        )
        await store.append_many([(f"bench/run_{SHORT}", e.kind_of(note), e.to_json(note))])
        await anyio.sleep(1 / a_second)


async def _in_a_tab(browser: Browser, address: str, work: Look) -> object:
    page = await browser.open()
    try:
        await page.goto(address)
        return await work(page)
    finally:
        await page.leave()


def initial_kb() -> float:
    """What the page and its first view load, followed from import to import."""
    entry = re.findall(r'src="/(assets/[^"]+\.js)"', (BUILT / "index.html").read_text())
    view = [path.relative_to(BUILT).as_posix() for path in BUILT.glob("assets/RunView-*.js")]
    todo, seen = [*entry, *view], set[str]()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        text = (BUILT / name).read_text()
        todo += [f"assets/{found}" for found in re.findall(r'from"\./([^"]+\.js)"', text)]
    return sum(len(gzip.compress((BUILT / name).read_bytes(), 9)) for name in seen) / 1000
