"""``agentcanvas`` alone: say what is here and what can be done, then serve it (D44)."""

from __future__ import annotations

import os
from typing import NoReturn

import anyio

from agentcanvas.app.doctor import Finding, Grade, examine
from agentcanvas.cli.here import root_here
from agentcanvas.cli.live.clean import one_line
from agentcanvas.cli.serve import serve_here
from agentcanvas.flows.load import flow_files

_SHOWN = ("workspace", "checks", "coding CLIs", "confinement")


def begin() -> NoReturn:
    """Greet, and hold the workspace until Ctrl-C."""
    root = root_here()
    findings = anyio.run(examine, root, os.environ)
    for line in greeting(findings, list(flow_files(root))):
        print(one_line(line))
    serve_here()


def greeting(findings: tuple[Finding, ...], flows: list[str]) -> list[str]:
    """What was found, in a few lines, and the next command."""
    lines = [
        f"{finding.subject:12} {finding.sentence}"
        for finding in findings
        if finding.subject in _SHOWN or finding.grade is Grade.FAIL
    ]
    if flows:
        lines.append(f"{'flows':12} {', '.join(flows)}: agentcanvas run {flows[0]}")
    else:
        lines.append(f"{'flows':12} none yet; one coder, and you review: agentcanvas init")
    has_cli = any(each.subject == "coding CLIs" and each.grade is Grade.OK for each in findings)
    command = "" if has_cli else ' --command "your coding agent"'
    lines.append(f'Start:       agentcanvas run "what is to be done"{command}')
    return lines
