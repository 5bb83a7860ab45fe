"""The page: the built interface from its folder, or plain words when it was not built."""

from __future__ import annotations

from html import escape
from pathlib import Path, PurePosixPath

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from agentcanvas.runs.office import Records, RunSummary
from agentcanvas.web.answers import html_page

_INDEX = "index.html"
_HASHED = "assets"
_FOREVER = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"
_NOT_FOUND = 404
# A wheel that was once built without the page may be in pip's cache.
_HOW_TO_BUILD = """
<ul>
<li>In a checkout of AgentCanvas, build it: <code>make ui</code></li>
<li>An installed package is installed anew, from where it came, with
<code>AGENTCANVAS_SKIP_UI</code> unset:
<code>pip install --force-reinstall --no-cache-dir agentcanvas</code></li>
</ul>
<p>Then stop <code>agentcanvas serve</code> and start it again. Everything can also be done on the
command line: <code>agentcanvas --help</code>.</p>
"""


def page_route(static: Path | None, records: Records, root: Path) -> BaseRoute:
    """What answers for everything that is not the API."""
    if static is not None and (static / _INDEX).is_file():
        return Mount("/", Ui(directory=static), name="page")

    async def unbuilt(request: Request) -> Response:
        del request
        return _unbuilt_page(await records.runs(), root)

    return Route("/{path:path}", unbuilt, methods=["GET"], name="page")


class Ui(StaticFiles):
    """The files of the interface; an address that only the page knows gives the page."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file, or the page."""
        file = path if path != "." else _INDEX
        try:
            response = await super().get_response(file, scope)
        except HTTPException as error:
            if error.status_code != _NOT_FOUND or PurePosixPath(path).suffix:
                raise
            response = await super().get_response(_INDEX, scope)
        is_hashed = PurePosixPath(file).parts[:1] == (_HASHED,)
        response.headers["cache-control"] = _FOREVER if is_hashed else _ASK_AGAIN
        return response


def _unbuilt_page(runs: tuple[RunSummary, ...], root: Path) -> Response:
    rows = "\n".join(_row(run) for run in runs)
    table = (
        "<table><thead><tr><th>Run</th><th>Flow</th><th>Request</th><th>Status</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )
    return html_page(
        "AgentCanvas: the interface is not built",
        f"<p>The server of <code>{escape(str(root))}</code> runs, and so does its API, but this "
        f"installation comes without the web interface.</p>{_HOW_TO_BUILD}"
        f"<h2>Runs</h2>{table if runs else '<p>None yet.</p>'}",
    )


def _row(run: RunSummary) -> str:
    report = f"/api/v1/runs/{run.run_id}/report"
    said = (
        f"{run.status}: {run.waits_for or run.reason}"
        if run.waits_for or run.reason
        else run.status
    )
    return (
        f'<tr><td><a href="{escape(report)}">{escape(run.run_id)}</a></td>'
        f"<td>{escape(run.flow)}</td><td>{escape(run.request)}</td><td>{escape(said)}</td></tr>"
    )
