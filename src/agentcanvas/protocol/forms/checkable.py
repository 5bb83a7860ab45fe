"""Whether a definition of done can be checked (T3).

The rule, in order:

1. A text with a *measurable sign* is checkable: a number that stands alone (``0 lint errors``,
   ``80%``), a command (in backticks, after ``$``, or a known test or build tool), a word for an
   outcome that either happens or not (passes, succeeds, fails, exists, returns, shows, …), or the
   absence of something countable (``no warnings``, ``without errors``).
2. Otherwise an English text is refused: ``works well``, ``looks good``, ``done``. It counts as
   English when it holds a common English word or one of the usual words of praise and completion,
   and at least half of its letters are ASCII.
3. A text that cannot be judged, because it is in another language, is accepted.

The rule looks at words, not at truth: ``step 2 looks good`` passes for its number. It stops the
habit, not the will.
"""

from __future__ import annotations

import re

_TOOLS = (
    "pytest|tox|nox|unittest|ruff|mypy|pyright|eslint|tsc|jest|vitest|mocha|playwright|ctest|rspec"
    "|shellcheck|clippy|golangci-lint|pre-commit|gradlew?|mvn"
)
_SUBCOMMANDS = (
    r"(?:npm|pnpm|yarn|bun) (?:test|run|ci|build|lint|install)|npx \w+"
    r"|cargo (?:test|build|check|fmt|run|bench)|go (?:test|build|vet|run)"
    r"|make (?:test|tests|check|lint|build|all|ci|demo|docs|install)"
    r"|git (?:apply|diff|status|log|grep)|docker (?:build|compose|run)|dotnet (?:test|build)"
    r"|(?<![./-])(?:python3?|node|bash|sh|curl) (?:-\w|[\w-]*[./:])[\w./:-]*"
)
_OUTCOMES = (
    "pass(?:es|ed|ing)?|succeeds?|succeeded|fail(?:s|ed|ing)?|exists?|compiles?"
    "|builds|returns?|exits?|raises?|throws?|prints?|outputs?|responds?|equals?|matches|contains?"
    "|includes?|shows?|displays?|appears?|renders?|redirects?|rejects?|refuses?|refused|rejected"
    "|accepted|accepts?|merged|reviewed|approved|unchanged|identical|reproducible|green|removed"
    "|deleted|renamed|covered|covers?|type-?checks?|validates?|parses|round-?trips?|deployed"
)
_ABSENCES = (
    r"(?:no|zero|without(?: any)?|free of|not a single) (?:\w+[ -]){0,2}?"
    r"(?:errors?|warnings?|failures?|regressions?|differences?|diffs?|changes|todos?|crash(?:es)?"
    r"|exceptions?|leaks?|conflicts?|duplicates?|vulnerabilit(?:y|ies)|references?|calls?|uses?"
    r"|imports?|matches)|(?:error|warning|regression)-free"
)
_MEASURABLE = re.compile(
    rf"(?<![\w.])\d+(?:[.,]\d+)*(?:\s?%|[a-z]{{1,3}}\b|(?!\w))|`[^`]+`|(?:^|\s)\$ \S"
    rf"|\b(?:{_TOOLS}|{_SUBCOMMANDS}|{_OUTCOMES}|{_ABSENCES})\b",
    re.IGNORECASE,
)
_ENGLISH_WORDS = (
    "the|is|are|be|been|and|of|to|it|its|with|for|that|this|should|must|has|have|as|all|everything"
    "|works?|working|looks?|feels?|seems?|done|finished|completed?|ready|well|good|great|fine"
    "|nice(?:ly)?|better|faster|clean(?:er|ed)?|robust|quality|user-friendly|expected"
    "|correct(?:ly)?|properly|success(?:ful(?:ly)?)?|improved?|refactored?|implemented?|fixed"
    "|updated?|added|handled|polished|optimi[sz]ed?"
)
_ENGLISH = re.compile(rf"\b(?:{_ENGLISH_WORDS})\b", re.IGNORECASE)


def why_not_checkable(text: str) -> str:
    """Why nobody could check ``text``, as the end of a sentence about it; empty when one can."""
    if _MEASURABLE.search(text) or not _is_english(text):
        return ""
    return (
        f'cannot be checked: "{" ".join(text.split())[:80]}" names nothing to run, count or see; '
        'say what must be true, such as "tests pass, build succeeds, 0 lint errors".'
    )


def _is_english(text: str) -> bool:
    letters = [character for character in text if character.isalpha()]
    latin = sum(character.isascii() for character in letters)
    return 2 * latin >= len(letters) and _ENGLISH.search(text) is not None
