"""A named section is cut out whole, and no more than it."""

from __future__ import annotations

import pytest

from agentcanvas.agents.sections import cut_section

pytestmark = pytest.mark.req("S9")

MARKDOWN = """\
# Guide
intro
## Login
how to log in
```sh
# not a heading
```
### Details
more
## Logout ##
bye
"""

PYTHON = '''\
import os

@cached
@other(
    1)
def helper(
    one: int,
) -> int:
    """Doc."""

    return one


class Login:
    name = "x"

    async def check(self) -> bool:
        try:
            return True
        finally:
            pass

    def check_all(self): return []


def check() -> None: ...
'''

TYPESCRIPT = """\
export async function login(user: string): Promise<void> {
  if (user) {
    go();
  }
}

export const limit = 3;

class Session {
  start(now: Date) {
    this.at = now;
  }
}
"""

GO = """\
func (s *Server) Start(ctx context.Context) error {
\treturn nil
}

type Config struct {
\tPort int
}
"""


def first_and_last(text: str, name: str) -> tuple[str, str]:
    found = cut_section(text, name)
    assert found is not None
    lines = found.splitlines()
    return lines[0], lines[-1]


@pytest.mark.parametrize(
    ("text", "name", "first", "last"),
    [
        (MARKDOWN, "Login", "## Login", "more"),
        (MARKDOWN, "## login", "## Login", "more"),
        (MARKDOWN, "Details", "### Details", "more"),
        (MARKDOWN, "Logout", "## Logout ##", "bye"),
        (MARKDOWN, "Guide", "# Guide", "bye"),
        (PYTHON, "helper", "def helper(", "    return one"),
        (PYTHON, "Login", "class Login:", "    def check_all(self): return []"),
        (PYTHON, "Login.check", "    async def check(self) -> bool:", "            pass"),
        (PYTHON, "Login.check_all()", *["    def check_all(self): return []"] * 2),
        (TYPESCRIPT, "login", "export async function login(user: string): Promise<void> {", "}"),
        (TYPESCRIPT, "limit", *["export const limit = 3;"] * 2),
        (TYPESCRIPT, "Session.start", "  start(now: Date) {", "  }"),
        (GO, "Start", "func (s *Server) Start(ctx context.Context) error {", "}"),
        (GO, "Config", "type Config struct {", "}"),
    ],
)
def test_a_section_is_cut_by_its_name(text: str, name: str, first: str, last: str) -> None:
    assert first_and_last(text, name) == (first, last)


@pytest.mark.parametrize("name", ["not a heading", "nothing", "Login.nothing", "", "."])
def test_what_is_not_there_is_none(name: str) -> None:
    assert cut_section(MARKDOWN, name) is None
    assert cut_section(PYTHON, name) is None


def test_a_minified_file_does_not_take_for_ever() -> None:
    assert cut_section(f"name({'(' * 500_000};", "name") is None


def test_the_line_above_with_a_decorator_belongs_to_it() -> None:
    assert first_and_last("x = 1\n@cached\ndef f():\n    pass\ny = 2", "f") == (
        "@cached",
        "    pass",
    )
