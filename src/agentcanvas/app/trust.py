"""The trust a user has put into a workspace (D43), in a record that lies outside of it.

What is covered and how it is compared is ``flows.trust``; here it is decided where the record lies,
and that a flow somebody makes here is no stranger's.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from agentcanvas.app.workspace import user_data_folder
from agentcanvas.clock import Clock
from agentcanvas.errors import ResourceError
from agentcanvas.flows.load import flow_files
from agentcanvas.flows.trust import (
    Fingerprint,
    TrustDecision,
    Trusted,
    decide,
    fingerprint,
    read_trust,
    write_trust,
)

RECORD = "trust.json"


class Standing(msgspec.Struct, frozen=True):
    """What a workspace holds now, what was trusted before, and what follows."""

    now: Fingerprint
    before: Trusted | None
    decision: TrustDecision


def trust_record(environ: Mapping[str, str]) -> Path:
    """The file with what this user trusts, in all workspaces."""
    return user_data_folder(environ) / RECORD


def standing(root: Path, environ: Mapping[str, str], flows: Sequence[str] = ()) -> Standing:
    """Look at every file that can run something; ``flows`` are some by their paths below the root.

    A flow that lies elsewhere than flows do, and the scripts of any, count only where it is named:
    whether the others may run does not depend on them.
    """
    now = fingerprint(root, flows)
    before = trusted_before(root, environ)
    return Standing(now, before, decide(now, before))


def trusted_before(root: Path, environ: Mapping[str, str]) -> Trusted | None:
    """What this user has trusted in a workspace, whatever is there now."""
    return read_trust(trust_record(environ)).get(str(root.resolve()))


def flows_to_look_at(
    root: Path, environ: Mapping[str, str], named: Sequence[str] = ()
) -> tuple[str, ...]:
    """The flows of a workspace, those elsewhere in it that were trusted, and what is named now."""
    before = trusted_before(root, environ)
    there = before.flows if before else ()
    return tuple(dict.fromkeys((*_flows_here(root), *there, *named)))


def _flows_here(root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in flow_files(root).values()]


def trust_of(root: Path, environ: Mapping[str, str]) -> TrustDecision:
    """Whether what lies in a workspace may run."""
    return standing(root, environ).decision


def trust_now(
    root: Path,
    environ: Mapping[str, str],
    clock: Clock,
    *,
    flows: Sequence[str] = (),
    seen: Fingerprint | None = None,
) -> TrustDecision:
    """Trust a workspace; ``seen`` is what the user looked at, so that nothing slips in later."""
    now = fingerprint(root, flows) if seen is None else seen
    apart = set(flows) - set(_flows_here(root))
    with _ours(environ) as record:
        write_trust(record, root, now, at=clock.now_ms(), flows=sorted(apart))
    return standing(root, environ, flows).decision


def revoke(root: Path, environ: Mapping[str, str]) -> bool:
    """Take the trust back; False if there was none."""
    with _ours(environ) as record:
        if str(root.resolve()) not in read_trust(record):
            return False
        write_trust(record, root, Fingerprint(), at=0)
    return True


class OwnFile:
    """A file that the user is about to make in a workspace by a command of ours.

    Once made it is trusted by that act, if all others were trusted or there are none. What the
    others are is settled before, so that nothing comes in with it.
    """

    def __init__(self, root: Path, path: str, environ: Mapping[str, str]) -> None:
        """Look around; ``path`` is relative to ``root``."""
        self._root = root
        self._path = path
        self._environ = environ
        found = standing(root, environ)
        self._others = _without(found.now.files, path)
        before = found.before and Trusted(_without(found.before.files, path))
        unfit = Fingerprint(self._others, found.now.unfit)
        self.among_trusted = decide(unfit, before).may_run

    def trust(self, content: bytes, clock: Clock) -> TrustDecision:
        """Say that it was made with this content; gives what holds now."""
        now = fingerprint(self._root)
        if self.among_trusted and now.covers(self._path, content):
            files = self._others | {self._path: now.files[self._path]}
            return trust_now(self._root, self._environ, clock, seen=Fingerprint(files))
        return trust_of(self._root, self._environ)


def _without(files: Mapping[str, str], path: str) -> dict[str, str]:
    return {name: digest for name, digest in files.items() if name != path}


@contextmanager
def _ours(environ: Mapping[str, str]) -> Iterator[Path]:
    """The record, with nobody else writing to it: it is read, changed and replaced as a whole."""
    record = trust_record(environ)
    try:
        record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with record.with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield record
    except OSError as wrong:
        raise ResourceError(
            f"The record of what you trust, {record}, cannot be written: {wrong.strerror}."
        ) from None
