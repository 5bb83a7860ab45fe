"""What agents and tests print is read in time that grows with its length, not with its square.

A long text may come from anybody, and the engine has one thread for its events. Processor
time is bounded by the kernel, so that a machine under load changes nothing.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

CPU_SECONDS = 20
"""For all shapes of one reader together; a reader with a square in it needs minutes for one."""

PROGRAM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({limit}, {limit}))
from agentcanvas.agents.json_text import values
from agentcanvas.agents.sections import cut_section
from agentcanvas.agents.cli.failures import reset_ms, why
from agentcanvas.patterns.role_play_pair import _role
from agentcanvas.proposals.counts import TAIL, count_tests
from agentcanvas.proposals.demands import lost_demands
from agentcanvas.proposals.secrets import secrets_in, without_secrets
from agentcanvas.proposals.verdict import read_verdict
from agentcanvas.sandbox.globs import within

LONG = 200_000
GLOBS = ("*a" * 40 + "*b", "**/*a*/" * 20, "{{a*,*}}" * 20)
HEADER = b"diff --git a/a b/a\\n--- a/a\\n+++ b/a\\n@@ -0,0 +1 @@\\n+"
TEST = b"diff --git a/test.c b/test.c\\n--- a/test.c\\n+++ b/test.c\\n@@ -1 +0,0 @@\\n-"
READERS = {{
    "count_tests": (count_tests, TAIL),
    "without_secrets": (without_secrets, LONG),
    "secrets_in": (
        lambda text: secrets_in(HEADER + text.replace("\\n", " ").encode() + b"\\n"), LONG
    ),
    "lost_demands": (
        lambda text: list(lost_demands(TEST + text.replace("\\n", " ").encode() + b"\\n")), LONG
    ),
    "read_verdict": (lambda text: read_verdict(text, by="critic"), LONG),
    "values": (values, LONG),
    "cut_section": (lambda text: cut_section(text, "name"), LONG),
    "why": (why, LONG),
    "reset_ms": (lambda text: reset_ms(text, 1_795_000_000_000), LONG),
    "role": (_role, LONG),
    "within": (lambda text: within(text, GLOBS), LONG),
}}
BEGINNINGS = ("", "Tests: ", "try again in ")
PIECES = ("\\n", "\\n ", " ", "0", "a", "-", "`", "{{", "1 a ", "password=a", "<", "```\\n")
read, most = READERS[sys.argv[1]]
for beginning in BEGINNINGS:
    for piece in PIECES:
        text = beginning + piece * (most // len(piece))
        read(text[: most - 1] + "!")
"""


@pytest.mark.parametrize(
    "reader",
    [
        "count_tests",
        "without_secrets",
        "secrets_in",
        "lost_demands",
        "read_verdict",
        "values",
        "cut_section",
        "why",
        "reset_ms",
        "role",
        "within",
    ],
)
def test_a_long_hostile_text_does_not_hold_the_engine_up(reader: str) -> None:
    program = PROGRAM.format(limit=CPU_SECONDS)
    done = subprocess.run([sys.executable, "-c", program, reader], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-500:] or "it took too much processor time"
