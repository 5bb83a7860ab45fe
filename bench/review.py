"""The review in a headless Chromium: what a large patch costs beside a small one.

Both are proposals of one real run on the product's own server. The page is open and warm; measured
is from the click in the queue to the lines on the screen, with everything that is fetched for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from agentcanvas.agents.runtime import Turn
from agentcanvas.app.office import open_engine
from agentcanvas.app.server import UI, serve_beside
from agentcanvas.runs.office import RunOrder
from bench.harness import Contender, Contest, Figure, at_most
from bench.runs import make_repository
from tests.e2e.browser import Page, find_browser, launched

LARGE, SMALL = 20_000, 200
OPENS = 7
SIZES = {"warm": 10, "small": SMALL, "large": LARGE}

OPEN = """
new Promise((done) => {
  const begun = performance.now();
  location.hash = "#/review/%s?task=%s";
  (function look() {
    const shown = document.querySelector("#proposal-title")?.textContent.includes("%s lines");
    if (shown && document.querySelectorAll(".diff-line").length > 4)
      requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begun)));
    else setTimeout(look, 1);
  })();
})
"""
NODES = "document.querySelectorAll('.diff *').length"


def base_of(lines: int) -> str:
    """Half as many lines as the patch has: each is taken away and put back changed."""
    return "".join(f"    value_{n} = compute(alpha, {n})\n" for n in range(lines // 2))


def work(turn: Turn) -> str:
    """Change every line of one's own file."""
    assert turn.place is not None
    path = turn.place.tree / f"{turn.task_id}.py"
    path.write_text(path.read_text().replace("compute(alpha", "compute(beta"))
    return f"{SIZES[turn.task_id]} lines"


def flow_text() -> str:
    """Three workers, whose proposals wait for you."""
    runtime = {"kind": "python", "call": "bench.review:work"}
    tasks = [
        {"id": name, "agent": name, "description": name, "scope": [f"{name}.py"]} for name in SIZES
    ]
    return json.dumps(
        {
            "version": 0.2,
            "agents": [{"id": name, "role": "worker", "runtime": runtime} for name in SIZES],
            "interactions": [
                {
                    "id": "work",
                    "patternId": "manager_worker",
                    "roles": {"worker": list(SIZES)},
                    "data": {"termination": [{"type": "max_rounds", "rounds": 1}]},
                    "tasks": tasks,
                }
            ],
            "review": {"reviewer": "person"},
        }
    )


async def opens(folder: Path, *, quick: bool) -> dict[str, Any]:
    """Medians in ms, and how many nodes the diff has drawn."""
    program = find_browser()
    assert program, "no Chromium or Chrome here: tools/browser.sh"
    assert (UI / "index.html").exists(), "the page is not built: make ui"
    make_repository(folder)
    for name, lines in SIZES.items():
        (folder / f"{name}.py").write_text(base_of(lines))
    functions = dict.fromkeys(SIZES, work)
    async with open_engine(folder, functions=functions) as (engine, store):
        run_id = await engine.start(RunOrder(flow="bench", flow_text=flow_text(), request="x"))
        async for _ in engine.events(run_id):
            pass
        taken: dict[str, Any] = {name: [] for name in SIZES}
        async with (
            serve_beside(engine, store, folder, port=0) as info,
            launched(program) as browser,
        ):
            for _ in range(2 if quick else OPENS):
                page = await browser.open()
                await page.goto(info.link)
                await page.wait_for_text(".head", "x")
                for name in SIZES:
                    taken[name].append(await opened(page, run_id, name))
                taken["nodes"] = await page.look(NODES)
                await page.leave()
    return {**{name: median(taken[name]) for name in SIZES}, "nodes": taken["nodes"]}


async def opened(page: Page, run_id: str, name: str) -> float:
    """How long it takes from the click to the lines."""
    return float(await page.look(OPEN % (run_id, name, SIZES[name])))


async def figure(place: Path, name: str, known: dict[str, Any], *, quick: bool) -> float:
    """One of the figures; all come from the same opens."""
    if not known:
        known.update(await opens(place, quick=quick))
    return float(known["large"] / known["small"]) if name == "ratio" else float(known["nodes"])


def contests(*, quick: bool) -> Iterator[Contest]:
    """The bar of the diff viewer."""
    known: dict[str, Any] = {}
    with TemporaryDirectory(prefix="agentcanvas-bench-") as name:
        place = Path(name) / "repository"
        place.mkdir()
        get = partial(figure, place, known=known, quick=quick)
        yield Contest(
            name=f"a patch of {LARGE:,} lines opens",
            figure=Figure(f"times as long as one of {SMALL}", better="lower"),
            contenders=[Contender("in the page", partial(get, name="ratio"), bar=at_most(2.5))],
            note="from the click to the lines on the screen, with all that is fetched",
        )
        yield Contest(
            name=f"a patch of {LARGE:,} lines is drawn with",
            figure=Figure("nodes", better="lower"),
            contenders=[Contender("in the page", partial(get, name="nodes"), bar=at_most(2000))],
        )
