"""What a change of package.json runs or fetches is pointed out, however it is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentcanvas.proposals.running_files import Occasion
from agentcanvas.proposals.self_running import self_running
from tests.proposals.workspaces import diff, write_files

pytestmark = pytest.mark.req("S6", "R1")

FILE = "package.json"
PLAIN = {
    "name": "x",
    "version": "1.0.0",
    "scripts": {"test": "jest"},
    "dependencies": {"a": "^1.0.0", "b": "1.2.3"},
}
RUNS = "changes a script that npm runs, on install too"
FETCHES = "takes a dependency from elsewhere than the registry"
STEERS = "changes settings by which npm or other tools run something"


def text(package: object) -> str:
    return json.dumps(package, indent=2) + "\n"


def told(folder: Path, before: str | None, after: str, *, with_base: bool = True) -> set[str]:
    """What is said of a change, with the file as it was at hand or from the patch alone."""
    old = {} if before is None else {FILE: before}
    base = write_files(folder / "base", old) if with_base else None
    found = self_running(diff(folder / "d", old, {FILE: after}), base)
    assert {note.occasion for note in found} <= {Occasion.INSTALL}
    return {note.detail for note in found}


CHANGES: dict[str, tuple[dict[str, object], str]] = {
    "a script": ({"scripts": {"test": "jest", "postinstall": "sh x"}}, RUNS),
    "another script": ({"scripts": {"test": "jest; sh x"}}, RUNS),
    "no scripts any more": ({"scripts": {}}, RUNS),
    "a build by node-gyp": ({"gypfile": True}, RUNS),
    "from git": ({"dependencies": {"a": "git+https://evil/x"}}, FETCHES),
    "from a forge": ({"devDependencies": {"a": "evil/x"}}, FETCHES),
    "under another name": ({"dependencies": {"a": "npm:evil@1"}}, FETCHES),
    "from a folder": ({"optionalDependencies": {"a": "file:./evil"}}, FETCHES),
    "from the web": ({"dependencies": {"a": "https://evil/x.tgz"}}, FETCHES),
    "one of another": ({"overrides": {"b": "npm:evil@1"}}, STEERS),
    "a command": ({"bin": "x.js"}, STEERS),
    "hooks of git": ({"husky": {"hooks": {"pre-commit": "evil"}}}, STEERS),
    "what lint-staged runs": ({"lint-staged": {"*": "evil"}}, STEERS),
    "settings of jest": ({"jest": {"globalSetup": "./evil.js"}}, STEERS),
    "another npm": ({"packageManager": "yarn@https://evil"}, STEERS),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_it_runs_or_fetches_is_pointed_out(tmp_path: Path, case: str) -> None:
    change, detail = CHANGES[case]
    after = {**PLAIN, **change}
    assert told(tmp_path / "1", text(PLAIN), text(after)) == {detail}
    assert told(tmp_path / "2", text(after), text(PLAIN)) <= {detail}
    assert told(tmp_path / "3", text(PLAIN), json.dumps(after)) == {detail}, "on one line"
    assert detail in told(tmp_path / "4", None, text(after)), "a new file"
    assert told(tmp_path / "5", text(PLAIN), text(after), with_base=False), "from the patch alone"


HARMLESS: dict[str, dict[str, object]] = {
    "a version": {"version": "2.0.0-rc.1"},
    "versions of dependencies": {"dependencies": {"a": "~2.1.3", "b": ">=1 <2 || ^3.0", "c": "*"}},
    "a new dependency": {"devDependencies": {"@types/node": "^22.0.0", "x": "latest"}},
    "one less": {"dependencies": {}},
    "a part of the same project": {"dependencies": {"a": "workspace:*", "b": "1.2.3"}},
    "words": {"description": 'says "scripts": {', "keywords": ["postinstall"]},
    "what is published": {"main": "x.js", "files": ["dist"], "exports": {".": "./x.js"}},
}


@pytest.mark.parametrize("case", HARMLESS)
def test_what_runs_nothing_is_not(tmp_path: Path, case: str) -> None:
    assert told(tmp_path, text(PLAIN), text({**PLAIN, **HARMLESS[case]})) == set()


def test_a_new_form_of_the_same_is_not(tmp_path: Path) -> None:
    turned = dict(reversed(PLAIN.items()))
    assert told(tmp_path, text(PLAIN), json.dumps(turned, indent=4)) == set()


@pytest.mark.parametrize(("old", "new"), [("^1.0.0", "~2.1.3"), ('"1.0.0"', '"1.0.1-rc.1"')])
def test_a_version_is_none_either_when_there_is_only_the_patch(
    tmp_path: Path, old: str, new: str
) -> None:
    assert told(tmp_path, text(PLAIN), text(PLAIN).replace(old, new), with_base=False) == set()


@pytest.mark.parametrize(
    "written",
    [
        '{"scripts":{"postinstall":"sh x"}}',
        '{"scripts":{"post\\u0069nstall":"sh x"}}',
        '{"\\u0073cripts":{"postinstall":"sh x"}}',
        '{"scripts":\n{"postinstall"\n:\n"sh x"}}',
        '{"version": "1", "scripts": {}, "scripts": {"install": "x"}}',
    ],
)
@pytest.mark.parametrize("with_base", [True, False])
def test_no_way_to_write_a_script_hides_it(tmp_path: Path, written: str, with_base: bool) -> None:
    expected = RUNS if with_base else "may change what npm runs, on install too"
    assert expected in told(tmp_path / "1", "{}\n", written + "\n", with_base=with_base)
    assert RUNS in told(tmp_path / "2", None, written + "\n", with_base=with_base)


@pytest.mark.parametrize("broken", ["{", "[]", "null", "[" * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_what_cannot_be_read_is_said_to_be_so(tmp_path: Path, broken: str) -> None:
    (detail,) = told(tmp_path, text(PLAIN), broken + "\n")
    assert detail == "cannot be read, so what it makes npm run is unknown"


def test_other_files_of_the_name_are_looked_at_too(tmp_path: Path) -> None:
    path = "web/Package.JSON"
    after = {**PLAIN, "scripts": {"install": "x"}}
    patch = diff(tmp_path / "d", {path: text(PLAIN)}, {path: text(after)})
    (note,) = self_running(patch, write_files(tmp_path / "base", {path: text(PLAIN)}))
    assert (note.path, note.detail) == (path, RUNS)


def test_a_file_that_is_not_as_it_was_is_judged_by_the_patch(tmp_path: Path) -> None:
    after = {**PLAIN, "scripts": {"test": "x", "install": "y"}}
    patch = diff(tmp_path / "d", {FILE: text(PLAIN)}, {FILE: text(after)})
    (note,) = self_running(patch, write_files(tmp_path / "base", {FILE: "{}\n"}))
    assert note.detail == "may change what npm runs, on install too"
