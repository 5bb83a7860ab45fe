from __future__ import annotations

import os
import random
import tracemalloc
import unicodedata
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentcanvas.proposals.policy import BreachKind, Policy, files_as_folders, fold, link_breach
from agentcanvas.sandbox.globs import within

pytestmark = pytest.mark.req("S6", "S8")

PLAIN = Policy()
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=12)
WORDS = st.text("abcdef._-", min_size=1, max_size=6).filter(lambda word: word.strip("."))
PATHS = st.lists(WORDS, min_size=1, max_size=4).map("/".join)


def kind_of(path: str | bytes, policy: Policy = PLAIN) -> BreachKind | None:
    breach = policy.path_breach(path if isinstance(path, bytes) else path.encode())
    return breach.kind if breach else None


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("src/api.py", None),
        ("a b/ü/😀.txt", None),
        (".github/workflows/ci.yml", None),
        (".gitignore", None),
        ("git/config", None),
        ("distance/x", None),
        ("👨\u200d👩\u200d👧.md", None),
        ("/etc/passwd", BreachKind.ABSOLUTE_PATH),
        ("../x", BreachKind.PARENT_FOLDER),
        ("a/../../x", BreachKind.PARENT_FOLDER),
        ("a/./b", BreachKind.BAD_NAME),
        ("a//b", BreachKind.BAD_NAME),
        ("a/", BreachKind.BAD_NAME),
        ("", BreachKind.BAD_NAME),
        ("a/...", BreachKind.BAD_NAME),
        ("a\\b", BreachKind.BAD_NAME),
        ("a\nb", BreachKind.BAD_NAME),
        ("a\x1b[2Jb", BreachKind.BAD_NAME),
        ("gpj.\u202eexe", BreachKind.BAD_NAME),
        ("a\u009b2Jb", BreachKind.BAD_NAME),
        ("a\u2028b", BreachKind.BAD_NAME),
        ("a\u2029b", BreachKind.BAD_NAME),
        (b"caf\xe9", BreachKind.BAD_NAME),
        ("x" * 300, BreachKind.BAD_NAME),
        ("d/" * 600 + "x", BreachKind.BAD_NAME),
        (".git/config", BreachKind.INTERNAL_FOLDER),
        ("sub/.git/hooks/post-checkout", BreachKind.INTERNAL_FOLDER),
        (".GIT/config", BreachKind.INTERNAL_FOLDER),
        (".g\u200cit/config", BreachKind.INTERNAL_FOLDER),
        (".git./config", BreachKind.INTERNAL_FOLDER),
        (".git /config", BreachKind.INTERNAL_FOLDER),
        (".git::$INDEX_ALLOCATION/config", BreachKind.INTERNAL_FOLDER),
        ("git~1/config", BreachKind.INTERNAL_FOLDER),
        ("GIT~12/config", BreachKind.INTERNAL_FOLDER),
        ("AGENTC~1/flows/x.yaml", BreachKind.INTERNAL_FOLDER),
        ("a/ag12f0~1/x", BreachKind.INTERNAL_FOLDER),
        (".g\u00adit/config", BreachKind.INTERNAL_FOLDER),
        (".g\u2060it/config", BreachKind.INTERNAL_FOLDER),
        (".git\ufe0f/config", BreachKind.INTERNAL_FOLDER),
        (".gi\U000e0074t/config", BreachKind.INTERNAL_FOLDER),
        ("backup~1/x", None),
        ("git~/x", None),
        ("\uff0e\uff47\uff49\uff54/config", BreachKind.INTERNAL_FOLDER),
        (".git", BreachKind.INTERNAL_FOLDER),
        (".agentcanvas/flows/x.yaml", BreachKind.INTERNAL_FOLDER),
        (".AgentCanvas/x", BreachKind.INTERNAL_FOLDER),
        (".gitmodules", BreachKind.SUBMODULE),
        (".GitModules", BreachKind.SUBMODULE),
        ("GITMOD~1", BreachKind.SUBMODULE),
        ("gi7eba~2", BreachKind.SUBMODULE),
        (".gitmodules::$DATA", BreachKind.SUBMODULE),
        ("node_modules/x/index.js", BreachKind.LEFT_OUT_FOLDER),
        ("web/node_modules/x.js", BreachKind.LEFT_OUT_FOLDER),
        ("NODE_M~1/x.js", BreachKind.LEFT_OUT_FOLDER),
        ("dist/x.js", BreachKind.LEFT_OUT_FOLDER),
        ("DIST./x.js", BreachKind.LEFT_OUT_FOLDER),
        ("web/dist/x.js", None),
    ],
)
def test_a_path_is_judged_by_what_the_most_forgetful_disk_makes_of_it(
    path: str | bytes, kind: BreachKind | None
) -> None:
    assert kind_of(path) is kind


@given(st.sampled_from([".git", ".agentcanvas"]), st.data())
def test_no_spelling_of_an_internal_folder_gets_through(name: str, data: st.DataObject) -> None:
    spelled = "".join(
        data.draw(st.sampled_from([char, char.upper(), char + "\u200c", char + "\u00ad"]))
        for char in name
    ) + data.draw(st.sampled_from(["", ".", " ", ". .", ":stream"]))
    above = data.draw(st.sampled_from(["", "a/", "a/b/"]))
    assert kind_of(f"{above}{spelled}/config") is BreachKind.INTERNAL_FOLDER


@given(st.lists(NAMES, min_size=1, max_size=5).map("/".join))
def test_a_path_without_a_breach_stays_below_the_root(path: str) -> None:
    assume(kind_of(path) is None)
    normal = os.path.normpath(f"/root/{path}")
    assert normal == f"/root/{path}"
    assert ".git" not in path.casefold().split("/")


@given(st.binary(max_size=40))
def test_any_bytes_get_an_answer_that_can_be_logged(raw: bytes) -> None:
    breach = PLAIN.path_breach(raw)
    if breach:
        assert breach.sentence.encode()


@given(NAMES)
def test_folding_twice_is_folding_once(name: str) -> None:
    once = fold(name)
    assume(unicodedata.normalize("NFKC", once.casefold()) == once)
    assert fold(once) == once


@pytest.mark.parametrize(
    ("allowed", "path", "kind"),
    [
        (("src",), "src/a.py", None),
        (("./src/",), "src/a.py", None),
        (("src",), "srcs/a.py", BreachKind.OUTSIDE_ALLOWED),
        (("src",), "src", BreachKind.OUTSIDE_ALLOWED),
        (("src", "docs"), "docs/x.md", None),
        ((".",), "anything", None),
    ],
)
def test_nothing_outside_the_allowed_folders_is_touched(
    allowed: tuple[str, ...], path: str, kind: BreachKind | None
) -> None:
    assert kind_of(path, Policy(allowed=allowed)) is kind


@pytest.mark.parametrize(
    ("glob", "path", "covered"),
    [
        ("frontend/src/components/Timeline/**", "frontend/src/components/Timeline/a/b.tsx", True),
        ("frontend/src/components/Timeline/**", "frontend/src/components/Other.tsx", False),
        ("src/api", "src/api/routes.py", True),
        ("src/api/", "src/api/v1/routes.py", True),
        ("src/api", "src/apis/routes.py", False),
        ("src/*", "src/a.py", True),
        ("src/*", "src/a/b.py", False),
        ("*.py", "a.py", True),
        ("*.py", "a/b.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "a/b/c.py", True),
        ("src/**/test_?.py", "src/x/y/test_1.py", True),
        ("src/**/test_?.py", "src/x/y/test_12.py", False),
        ("src/**/*.{ts,tsx}", "src/x/y.tsx", True),
        ("src/**/*.{ts,tsx}", "src/x/y.js", False),
        ("app/[id]/page.tsx", "app/[id]/page.tsx", True),
        ("app/[id]/page.tsx", "app/i/page.tsx", False),
        ("**", "anything/at/all", True),
        ("a.b", "aXb", False),
    ],
)
def test_a_scope_means_no_more_than_it_says(glob: str, path: str, covered: bool) -> None:
    assert within(path, [glob]) is covered
    assert kind_of(path, Policy(scope=(glob,))) is (None if covered else BreachKind.OUTSIDE_SCOPE)


@given(PATHS, PATHS)
def test_a_plain_pattern_covers_its_path_and_what_is_below(pattern: str, path: str) -> None:
    assert within(path, [pattern]) == (path == pattern or path.startswith(pattern + "/"))


def test_what_is_known_of_a_pattern_stays_small_whatever_the_names_are() -> None:
    """Each letter of these names leads to places of the pattern that no other did."""
    chance = random.Random(1)
    names = ("/".join("".join(chance.choices("ab", k=199)) for _ in range(5)) for _ in range(10))
    tracemalloc.start()
    try:
        assert not any(within(name, ["**a" + "{?,/}" * 199 + "c"]) for name in names)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("b", None),
        ("../x", None),
        ("./b/../b", None),
        ("/etc/passwd", BreachKind.LINK_LEAVES),
        ("../../x", BreachKind.LINK_LEAVES),
        ("../../workspace/x", BreachKind.LINK_LEAVES),
        ("b/../../../x", BreachKind.LINK_LEAVES),
        ("", BreachKind.LINK_LEAVES),
        ("../.git/config", BreachKind.LINK_INTO_INTERNAL),
        ("../.GIT", BreachKind.LINK_INTO_INTERNAL),
        ("../GIT~1/config", BreachKind.LINK_INTO_INTERNAL),
        ("../agentc~1", BreachKind.LINK_INTO_INTERNAL),
        ("../venv/bin/python", BreachKind.LINK_LEAVES),
        ("../inside/deep", None),
        ("../inside/../../x", BreachKind.LINK_LEAVES),
        ("../loop", BreachKind.LINK_LEAVES),
    ],
)
def test_a_link_is_followed_through_the_links_that_are_there(
    target: str, kind: BreachKind | None
) -> None:
    there = {b"venv": b"/usr", b"inside": b"d", b"loop": b"loop"}
    breach = link_breach(b"d/link", target.encode(), there.get)
    assert (breach and breach.kind) is kind


@given(st.lists(st.sampled_from(["..", ".", "a", "b", "up", "out"]), min_size=1, max_size=8))
def test_a_link_that_passes_leads_nowhere_outside_on_a_real_disk(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str]
) -> None:
    there = {b"a/up": b"..", b"b/out": b"../.."}
    breach = link_breach(b"a/link", "/".join(parts).encode(), there.get)
    assume(breach is None)
    root = tmp_path_factory.mktemp("links") / "workspace"
    for folder in ("a/b", "b/a"):
        (root / folder).mkdir(parents=True)
    (root / "a" / "up").symlink_to("..")
    (root / "b" / "out").symlink_to("../..")
    (root / "a" / "link").symlink_to("/".join(parts))
    end = Path(os.path.realpath(root / "a" / "link"))
    assert end.is_relative_to(root)


def test_what_stands_below_a_file_is_found_however_it_is_spelt() -> None:
    names = [b"x", b"x/y", b"Menu", b"MENU/y", b"z/a", b"z/b", b"xy/z", b"v", b"V. /y", b"w:y"]
    assert {(breach.kind, breach.path) for breach in files_as_folders(names)} == {
        (BreachKind.FILE_AND_FOLDER, "x/y"),
        (BreachKind.FILE_AND_FOLDER, "MENU/y"),
        (BreachKind.FILE_AND_FOLDER, "V. /y"),
    }
