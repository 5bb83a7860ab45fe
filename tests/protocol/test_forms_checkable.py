"""Which definitions of done count as checkable, phrase by phrase (T3)."""

from __future__ import annotations

import pytest

from agentcanvas.protocol.forms import why_not_checkable

pytestmark = pytest.mark.req("T3")

CHECKABLE = [
    "pytest passes, build succeeds, 0 lint errors",
    "tests pass, build succeeds, 0 lint errors",
    "All tests pass",
    "The suite is green",
    "npm test exits with 0",
    "Coverage is at least 80%",
    "p95 latency under 200 ms",
    "p95 latency under 200ms",
    "no lint errors",
    "No new warnings in the build",
    "The log has zero ERROR lines and no crashes",
    "Runs without errors",
    "a regression-free release",
    "`scripts/verify` is quiet",
    "$ ./verify is quiet",
    "make test works",
    "cargo build is fine",
    "go vet is happy",
    "python tools/check.py is quiet",
    "curl https://localhost/health is fine",
    "node -e 1 is quiet",
    "README.md exists",
    "The endpoint returns the new field",
    "POST /login rejects a wrong password",
    "The page shows the error text",
    "The old module is removed",
    "The package builds",
    "The crate compiles",
    "mypy is happy",
    "git diff is empty",
    "The three old flags fail with a hint",
    "Output is identical to the reference",
    "It works well: 5 of 5 tests are fine",
]

VAGUE = [
    "works well",
    "It works well",
    "looks good",
    "It works well and looks good",
    "Works as expected",
    "The feature works correctly",
    "Everything is fine",
    "The code is clean",
    "Code is cleaner and more robust",
    "done",
    "Done.",
    "Finished",
    "The task is completed successfully",
    "Refactoring is successful",
    "Refactored",
    "API v2 looks good",
    "OAuth2 is implemented properly",
    "src/api.ts looks good",
    "make it nice",
    "node works well",
    "run.sh works well",
    "run.sh and/or its docs look good",
    "the bash looks good",
    "go for high quality",
    "The password is handled well",
    "The build is good",
    "The user is happy",
    "improved",
    "better and faster",
    "It should feel nice",
    "Works.",
    "ready to ship",
    "Looks good to me 👍",
    "café menu looks nice",
]

OTHER_LANGUAGES = [
    "잘 작동함",
    "테스트 통과, 빌드 성공, 린트 에러 없음",
    "工作正常",
    "Всё работает",
    "Alles funktioniert gut",
    "Tout fonctionne bien",
    "funciona perfectamente",
    "테스트 and 빌드",
]


@pytest.mark.parametrize("text", CHECKABLE)
def test_a_text_that_names_something_to_run_count_or_see_is_checkable(text: str) -> None:
    assert why_not_checkable(text) == ""


@pytest.mark.parametrize("text", VAGUE)
def test_praise_and_completion_alone_are_refused_with_an_example(text: str) -> None:
    reason = why_not_checkable(text)
    assert "cannot be checked" in reason
    assert "0 lint errors" in reason


@pytest.mark.parametrize("text", OTHER_LANGUAGES)
def test_a_text_in_another_language_cannot_be_judged_and_is_accepted(text: str) -> None:
    assert why_not_checkable(text) == ""


@pytest.mark.parametrize("text", VAGUE)
def test_adding_a_number_makes_a_vague_text_checkable(text: str) -> None:
    assert why_not_checkable(f"{text}, 0 lint errors") == ""


@pytest.mark.parametrize("text", ["DONE", "LOOKS GOOD", "Looks\ngood"])
def test_case_and_line_breaks_change_nothing(text: str) -> None:
    assert why_not_checkable(text)


def test_a_long_text_is_quoted_in_short() -> None:
    assert len(why_not_checkable("it is good " * 1_000)) < 300
