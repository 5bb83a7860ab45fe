"""How a refusal looks: a MAC ERROR message, or a short page where a person is looking."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from agentcanvas.clock import Clock
from agentcanvas.errors import AgentCanvasError
from agentcanvas.web import problems
from agentcanvas.web.operation import JSON

_UNAUTHENTICATED = 401
_API = "/api/"

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 3rem auto; padding: 0 1rem;
  color: #1f2328; background: #fff; }}
@media (prefers-color-scheme: dark) {{ body {{ color: #e6edf3; background: #0d1117; }} }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8884; }}
code {{ font-family: ui-monospace, monospace; }}
</style>
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


def html_page(title: str, content: str) -> str:
    """A page that needs nothing but itself; ``content`` is HTML, ``title`` plain text."""
    return _PAGE.format(title=escape(title), content=content)


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
        page = html_page("AgentCanvas", f"<p>{escape(str(error))}</p>")
        return HTMLResponse(page, status_code=status, headers=headers)
    body = quietly(problems.to_body(error, time=clock.now()))
    return Response(body, status_code=status, media_type=JSON, headers=headers)
