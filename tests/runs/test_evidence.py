"""Checks on what a worker has handed in: they run its code, so they may leave anything behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.clock import SystemClock
from agentcanvas.proposals.checks import Check
from agentcanvas.proposals.policy import Policy
from agentcanvas.proposals.review import (
    GateOptions,
    Outcome,
    ReviewCase,
    Ruling,
    automatic_verdict,
    judge,
)
from agentcanvas.runs.evidence import Examiner
from agentcanvas.sandbox.confine import Confinement
from agentcanvas.sandbox.diff import make_patch
from agentcanvas.sandbox.generation import take_generation
from agentcanvas.sandbox.paths import run_folder
from agentcanvas.sandbox.prepare import prepare_sandbox
from tests.runs.workspaces import repository
from tests.sandbox.conftest import RUN, bubblewrap, confinement, landlock, write
from tests.sandbox.ordinary_user import as_ordinary_user

__all__ = ["bubblewrap", "confinement", "landlock"]

pytestmark = [pytest.mark.anyio, pytest.mark.req("D13")]

DIGS = "import os\nfor _ in range(1500):\n    os.mkdir('d')\n    os.chdir('d')\n"


async def test_a_check_that_digs_deep_leaves_nothing_behind(
    tmp_path: Path, confinement: Confinement
) -> None:
    root = repository(tmp_path / "repo", {"README.md": "hello\n"})
    base = await take_generation(root, RUN)
    sandbox = await prepare_sandbox(base, "coder")
    write(sandbox.work_dir, {"dig.py": DIGS})
    patch = await make_patch(sandbox)
    dig = Check("dig", "if [ -f dig.py ]; then python3 dig.py; fi")
    examiner = Examiner(
        confinement, SystemClock(), declared=(dig, Check("second", "test -f dig.py"))
    )
    evidence = await examiner.examine(base, patch.text, ["dig.py"], Policy())
    assert evidence.sentence.startswith("dig: green → green; second: red → green; ")
    assert [path.name for path in run_folder(root, RUN).iterdir()] == ["coder"]


CODE = {
    "app.py": "def f():\n    return 1\n",
    "test_app.py": (
        "import unittest\nfrom app import f\n\n\nclass TestF(unittest.TestCase):\n"
        "    def test_f(self):\n        self.assertEqual(f(), 1)\n"
    ),
}
BROKEN = {"app.py": "def f():\n    return 2\n"}
PRINTS = "import sys\nprint('Ran 1 test in 0.001s\\n\\nOK', file=sys.stderr)\nsys.exit()\n"
JUDGES = {
    "a module in place of the tool": {"unittest.py": PRINTS},
    "a package in place of the tool": {"unittest/__init__.py": "", "unittest/__main__.py": PRINTS},
    "a module that the tool needs": {"argparse.py": PRINTS},
    "a test that demands nothing": {
        "test_app.py": CODE["test_app.py"].replace("self.assertEqual(f(), 1)", "pass")
    },
    "a test that demands something else": {"test_app.py": CODE["test_app.py"].replace("1)", "2)")},
    "a test that is skipped": {
        "test_app.py": CODE["test_app.py"].replace("def", "@unittest.skip('later')\n    def", 1)
    },
}


async def judged(root: Path, confinement: Confinement, files: dict[str, str]) -> tuple[str, Ruling]:
    """What the checks say of a change, and what a flow does that approves by itself."""
    base = await take_generation(root, RUN)
    sandbox = await prepare_sandbox(base, "coder")
    write(sandbox.work_dir, dict(files))
    patch = await make_patch(sandbox)
    changed = [change.path.decode() for change in patch.changes]
    evidence = await Examiner(confinement, SystemClock()).examine(
        base, patch.text, changed, Policy()
    )
    options = GateOptions(auto_approve=True)
    case = ReviewCase("coder", (), evidence, automatic_verdict(options), options=options)
    return evidence.sentence, judge(case)


@pytest.mark.req("R1")
@pytest.mark.parametrize("case", JUDGES)
async def test_a_change_that_brings_its_own_judge_is_not_approved_by_code_alone(
    tmp_path: Path, confinement: Confinement, case: str
) -> None:
    root = repository(tmp_path / "repo", CODE)
    said, ruling = await judged(root, confinement, BROKEN | JUDGES[case])
    assert "green → green" in said
    assert "the change also edits how it is checked" in said
    assert ruling.outcome is Outcome.ASK_PERSON
    assert said in ruling.reason


@pytest.mark.req("R1")
async def test_a_change_with_more_tests_is_approved_by_itself(
    tmp_path: Path, confinement: Confinement
) -> None:
    root = repository(tmp_path / "repo", CODE)
    more = CODE["test_app.py"] + "\n    def test_more(self):\n        self.assertGreater(f(), 0)\n"
    said, ruling = await judged(root, confinement, {"test_app.py": more})
    assert said == "unittest: green → green"
    assert ruling.outcome is Outcome.APPLY


SCRIPT = """
import sys
from pathlib import Path
import anyio
from agentcanvas.clock import SystemClock
from agentcanvas.proposals.checks import Check
from agentcanvas.proposals.policy import Policy
from agentcanvas.runs.evidence import Examiner
from agentcanvas.sandbox.diff import make_patch
from agentcanvas.sandbox.generation import take_generation
from agentcanvas.sandbox.paths import run_folder
from agentcanvas.sandbox.pick import pick
from agentcanvas.sandbox.prepare import prepare_sandbox

async def main(root, harm):
    base = await take_generation(root, "run_20260219_100000")
    sandbox = await prepare_sandbox(base, "coder")
    (sandbox.work_dir / "harm.sh").write_text(harm)
    patch = await make_patch(sandbox)
    first = Check("first", "if [ -f harm.sh ]; then sh harm.sh; fi")
    confinement = (await pick(only="landlock")).confinement
    examiner = Examiner(confinement, SystemClock(), declared=(first, Check("second", "ls")))
    evidence = await examiner.examine(base, patch.text, ["harm.sh"], Policy())
    print(evidence.sentence)
    print(evidence.checks[1].after.output)
    print([path.name for path in run_folder(base.workspace, base.run_id).iterdir()])

anyio.run(main, Path(sys.argv[1]), sys.argv[2])
"""


@pytest.mark.usefixtures("landlock")
def test_a_check_that_closes_its_folder_does_not_keep_the_next_one_out(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"package.json": "{}", ".gitignore": "node_modules\n"})
    write(root, {"node_modules/left/package.json": "{}"})
    said = as_ordinary_user(SCRIPT, str(root), "chmod 0 .").splitlines()
    assert said[0].startswith("first: green → green; second: green → green; ")
    assert said[1:] == ["harm.sh", "node_modules", "package.json", "['coder']"]


@pytest.mark.usefixtures("landlock")
def test_a_check_that_cannot_be_run_has_failed_and_says_why(tmp_path: Path) -> None:
    files = {"web/package.json": "{}", ".gitignore": "node_modules\n"}
    root = repository(tmp_path / "repo", files)
    write(root, {"web/node_modules/left/package.json": "{}"})
    said = as_ordinary_user(SCRIPT, str(root), "chmod 500 web").splitlines()
    assert said[0].startswith("first: green → green; second: green → red; ")
    assert said[1].startswith("it could not be run: The dependencies could not be brought: ")
    assert "Permission denied" in said[1]
    assert said[2] == "['coder']"
