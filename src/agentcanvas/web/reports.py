"""A run's report as an answer, in the form that was asked for (V6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from starlette.responses import Response

from agentcanvas.runs.events import Recorded
from agentcanvas.runs.report import markdown
from agentcanvas.runs.report_html import html_report
from agentcanvas.runs.report_json import json_report

# A report holds what agents wrote: even if a script slipped through, it would not run.
_NO_SCRIPTS = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'none'"
)


def report(recorded: Sequence[Recorded], form: Literal["md", "json", "html"]) -> Response:
    """The report of these events."""
    match form:
        case "md":
            return Response(markdown(recorded), media_type="text/markdown")
        case "json":
            return Response(json_report(recorded), media_type="application/json")
        case "html":
            headers = {"content-security-policy": _NO_SCRIPTS}
            return Response(html_report(recorded), media_type="text/html", headers=headers)
