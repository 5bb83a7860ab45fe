"""Existing tests that demand less than before are told; more tests, and moved ones, are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.errors import ProposalMalformed
from agentcanvas.proposals.demands import DELETED, LOOSENED, SWITCHED_OFF, is_test, lost_demands
from tests.proposals.workspaces import Files, diff

pytestmark = pytest.mark.req("D13")

TEST = "from app import f\n\n\ndef test_f():\n    value = f()\n    assert value == 1\n"
MORE = TEST + "\n\ndef test_g():\n    assert f() != 2\n"
JS = "const f = require('./f')\n\ntest('f', () => {\n  expect(f()).toBe(1)\n})\n"
GO = 'func TestF(t *testing.T) {\n\tif F() != 1 {\n\t\tt.Error("no")\n\t}\n}\n'


@pytest.mark.parametrize(
    "path",
    [
        "test_app.py",
        "tests/helper.py",
        "tests/unit/deep/a.py",
        "src/app_test.go",
        "src/app.test.tsx",
        "src/App.spec.js",
        "src/__tests__/app.js",
        "src/__snapshots__/app.test.js.snap",
        "spec/models/user_spec.rb",
        "src/test/java/AppTest.java",
        "AppTests.cs",
        "TESTS/Test_App.py",
        "test.js",
        "e2e/login.ts",
    ],
)
def test_files_of_tests_are_known_by_their_names(path: str) -> None:
    assert is_test(path)


@pytest.mark.parametrize(
    "path",
    ["app.py", "contest.py", "src/latest.js", "testing.md", "tests/data/in.json", "Testa.md"],
)
def test_other_files_are_not(path: str) -> None:
    assert not is_test(path)


LOST: dict[str, tuple[Files, Files, dict[str, str]]] = {
    "a test that demands nothing": (
        {"test_a.py": TEST},
        {"test_a.py": "def test_f():\n    pass\n"},
        {"test_a.py": LOOSENED},
    ),
    "another result is expected": (
        {"test_a.py": TEST},
        {"test_a.py": TEST.replace("== 1", "== 2")},
        {"test_a.py": LOOSENED},
    ),
    "one of two tests": ({"test_a.py": MORE}, {"test_a.py": TEST}, {"test_a.py": LOOSENED}),
    "the file": ({"test_a.py": TEST}, {}, {"test_a.py": DELETED}),
    "a file that tests need": ({"tests/help.py": "x = 1\n"}, {}, {"tests/help.py": DELETED}),
    "one of the two that say the same": (
        {"test_a.py": TEST, "test_b.py": TEST},
        {"test_c.py": TEST},
        {"test_a.py": DELETED, "test_b.py": DELETED},
    ),
    "JavaScript": (
        {"a.test.js": JS},
        {"a.test.js": JS.replace("toBe(1)", "toBeTruthy()")},
        {"a.test.js": LOOSENED},
    ),
    "Go": (
        {"a_test.go": GO},
        {"a_test.go": GO.replace('t.Error("no")', "return")},
        {"a_test.go": LOOSENED},
    ),
    "a snapshot": (
        {"__snapshots__/a.js.snap": "one\ntwo\n"},
        {"__snapshots__/a.js.snap": "one\n2\n"},
        {"__snapshots__/a.js.snap": LOOSENED},
    ),
    "skipped": (
        {"test_a.py": TEST},
        {"test_a.py": TEST.replace("def", "@pytest.mark.skip\ndef")},
        {"test_a.py": SWITCHED_OFF},
    ),
    "all but one": (
        {"a.test.js": JS},
        {"a.test.js": JS + "test.only('g', () => {})\n"},
        {"a.test.js": SWITCHED_OFF},
    ),
    "what cannot be read": (
        {"test_a.py": TEST},
        {"test_a.py": b"\0\1\2"},
        {"test_a.py": LOOSENED},
    ),
}


@pytest.mark.parametrize("case", LOST)
def test_what_is_lost_is_told_with_its_file(tmp_path: Path, case: str) -> None:
    before, after, told = LOST[case]
    assert dict(lost_demands(diff(tmp_path, before, after))) == told


KEPT: dict[str, tuple[Files, Files]] = {
    "a test is added": ({"test_a.py": TEST}, {"test_a.py": MORE}),
    "a file is added": ({"test_a.py": TEST}, {"test_a.py": TEST, "test_b.py": MORE}),
    "the ground is another": (
        {"test_a.py": TEST},
        {
            "test_a.py": TEST.replace("from app", "from app.core").replace(
                "value = f()", "value = f( )"
            )
        },
    ),
    "a test is moved": ({"test_a.py": MORE}, {"tests/test_f.py": MORE}),
    "a test is put into a class": (
        {"test_a.py": TEST},
        {"test_a.py": "class TestF:\n" + TEST.replace("\n", "\n    ").rstrip(" ")},
    ),
    "a model is fitted": ({"test_a.py": TEST}, {"test_a.py": TEST + "\nmodel.fit(1)\n"}),
    "code that is no test": ({"app.py": "assert x\n"}, {"app.py": "pass\n"}),
}


@pytest.mark.parametrize("case", KEPT)
def test_usual_work_on_tests_is_not_told(tmp_path: Path, case: str) -> None:
    assert list(lost_demands(diff(tmp_path, *KEPT[case]))) == []


def test_what_is_no_plain_patch_is_refused() -> None:
    with pytest.raises(ProposalMalformed):
        list(lost_demands(b"nonsense\n"))
