"""A confinement is chosen by what it really does, and none is ever left out in silence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentcanvas.errors import NoConfinement
from agentcanvas.sandbox import pick as pick_module
from agentcanvas.sandbox.confine import Confinement
from agentcanvas.sandbox.confinements.unconfined import Unconfined
from agentcanvas.sandbox.pick import pick

pytestmark = pytest.mark.req("PR4")


def fake_bwrap(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


async def test_the_strongest_that_works_is_chosen(bubblewrap: Confinement) -> None:
    picked = await pick()
    assert picked.confinement == bubblewrap
    assert picked.refused == ()


async def test_without_bubblewrap_landlock_is_chosen_and_the_user_warned(
    landlock: Confinement, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentcanvas.sandbox.pick.shutil.which", lambda _: None)
    picked = await pick()
    assert picked.confinement == landlock
    assert picked.refused == ("bubblewrap: not installed (apt install bubblewrap)",)
    assert any("Landlock" in warning for warning in picked.warnings)


async def test_a_bubblewrap_that_may_not_is_refused_in_its_own_words(
    landlock: Confinement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    complaint = "bwrap: setting up uid map: Permission denied"
    fake_bwrap(tmp_path, f"echo '{complaint}' >&2; exit 1", monkeypatch)
    picked = await pick()
    assert picked.confinement == landlock
    assert picked.refused == (f"bubblewrap: {complaint}",)


async def test_a_confinement_that_confines_nothing_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Finds the tree among the options (the second of three binds), and runs the command there.
    script = (
        'n=0; while [ "$1" != "--" ]; do if [ "$1" = --bind ]; then n=$((n+1)); '
        '[ $n = 2 ] && tree=$2; fi; shift; done; shift; cd "$tree"; exec "$@"'
    )
    fake_bwrap(tmp_path, script, monkeypatch)
    with pytest.raises(NoConfinement) as refusal:
        await pick(only="bubblewrap")
    assert refusal.value.reasons == ("bubblewrap: a process inside could write outside",)


async def test_when_nothing_works_it_refuses_with_every_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agentcanvas.sandbox.pick.shutil.which", lambda _: None)
    monkeypatch.setattr(pick_module, "landlock_abi", lambda: 2)
    with pytest.raises(NoConfinement) as refusal:
        await pick()
    assert [reason.split(":")[0] for reason in refusal.value.reasons] == [
        "bubblewrap",
        "landlock",
        "seatbelt",
    ]
    assert "Landlock ABI 2, 3 is needed" in str(refusal.value)
    assert "--unsafe" in str(refusal.value)


async def test_running_without_is_an_explicit_choice_that_warns() -> None:
    picked = await pick(unsafe=True)
    assert picked.confinement == Unconfined()
    assert picked.warnings[0].startswith("UNSAFE")


async def test_a_confinement_that_does_not_exist_is_refused() -> None:
    with pytest.raises(NoConfinement, match="'docker'") as refusal:
        await pick(only="docker")
    assert refusal.value.reasons


async def test_running_as_root_is_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentcanvas.sandbox.pick.os.geteuid", lambda: 0)
    assert any("root" in warning for warning in (await pick(unsafe=True)).warnings)
    monkeypatch.setattr("agentcanvas.sandbox.pick.os.geteuid", lambda: 1000)
    assert not any("root" in warning for warning in (await pick(unsafe=True)).warnings)
