"""How a refusal looks: a MAC ERROR message, or a short page where a person is looking."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from html import escape
from types import MappingProxyType
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from agentcanvas.clock import Clock
from agentcanvas.errors import AgentCanvasError
from agentcanvas.web import problems
from agentcanvas.web.operation import JSON

_UNAUTHENTICATED = 401
_API = "/api/"
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 3rem auto; padding: 0 1rem;
  color: #1f2328; background: #fff; }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #0d1117; } }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8884; }
code { font-family: ui-monospace, monospace; }
"""
# The one style that such a page has is let in by its hash; scripts and all else stay out.
_ITS_STYLE = b64encode(sha256(_STYLE.encode()).digest()).decode()
_NOTHING_ELSE = (
    f"default-src 'none'; style-src 'sha256-{_ITS_STYLE}'; base-uri 'none'; frame-ancestors 'none'"
)
_QUOTED = re.compile("`([^`]+)`")

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
{content}
</body>
</html>
"""


def is_api(request: Request) -> bool:
    """Whether a program is asking, and not a person with a browser."""
    return request.url.path.startswith(_API)


def html_page(
    title: str, content: str, *, status: int = 200, headers: Mapping[str, str] = _NO_HEADERS
) -> Response:
    """A page that needs nothing but itself; ``content`` is HTML, ``title`` plain text."""
    return HTMLResponse(
        _PAGE.format(title=escape(title), style=_STYLE, content=content),
        status_code=status,
        headers={**headers, "content-security-policy": _NOTHING_ELSE},
    )


def refusal(
    request: Request,
    error: AgentCanvasError,
    clock: Clock,
    quietly: Callable[[bytes], bytes] = bytes,
) -> Response:
    """The answer to a request that cannot be met; ``quietly`` leaves out what must not be said."""
    status = problems.status_of(error)
    headers = {"www-authenticate": "Bearer"} if status == _UNAUTHENTICATED else {}
    if not is_api(request) and "text/html" in request.headers.get("accept", ""):
        said = _QUOTED.sub(r"<code>\1</code>", escape(str(error)))
        return html_page("AgentCanvas", f"<p>{said}</p>", status=status, headers=headers)
    body = quietly(problems.to_body(error, time=clock.now()))
    return Response(body, status_code=status, media_type=JSON, headers=headers)
