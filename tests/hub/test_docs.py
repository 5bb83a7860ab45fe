"""The programs of docs/hub.md run as they are printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "hub.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"<!-- example: (\w+) -->\n```python\n(.*?)```", PAGE, re.DOTALL))


@pytest.mark.parametrize(("name", "said"), [("first", "{'lines': 2}\n"), ("recovery", "")])
def test_a_program_of_the_page_runs(name: str, said: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(EXAMPLES[name], encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (ran.stdout, ran.stderr) == (said, "")


def test_every_program_of_the_page_is_run() -> None:
    assert PAGE.count("```python") == len(EXAMPLES) == 2
