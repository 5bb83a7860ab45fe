"""Flow files on disk: found by name, read whole, and replaced all at once or not at all.

A flow with errors is never written, so that what is saved can be run (I5).
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

from agentcanvas.errors import FlowError
from agentcanvas.flows.catalogue import CATALOGUE
from agentcanvas.flows.check import Checked, check
from agentcanvas.flows.document import MAX_BYTES, Document, read_document
from agentcanvas.flows.model import Flow
from agentcanvas.flows.pattern_info import Patterns
from agentcanvas.flows.problem import Problem, Rule, did_you_mean

FLOWS: Final = Path(".agentcanvas") / "flows"
SUFFIXES: Final = (".yaml", ".yml")


def flow_files(workspace: Path) -> dict[str, Path]:
    """The flows of a workspace by name."""
    folder = workspace / FLOWS
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    found = {file.stem: file for file in reversed(files) if file.suffix in SUFFIXES}
    return dict(sorted(found.items()))


def find_flow(workspace: Path, name: str) -> Path:
    """The file of a flow, by its name or its path."""
    known = flow_files(workspace)
    if name in known:
        return known[name]
    if name.endswith(SUFFIXES) and (workspace / name).is_file():
        return workspace / name
    advice = did_you_mean(name, known, "make one with: agentcanvas flow new")
    raise FlowError(f"There is no flow {name} in {FLOWS}; {advice}")


def read_flow(path: Path) -> Document:
    """The document in a file; what keeps it from being read is a problem of the document."""
    try:
        content = _content(path)
    except OSError as wrong:
        if isinstance(wrong, FileNotFoundError):
            return _unreadable(path, "the file is not there")
        return _unreadable(path, f"the file cannot be read: {wrong.strerror}")
    if content is None:
        return _unreadable(path, "this is not a file")
    return read_document(content, str(path))


def load_flow(path: Path, patterns: Patterns = CATALOGUE) -> Flow:
    """The flow in a file; every problem in one error."""
    return check(read_flow(path), patterns).sound()


def save_flow(
    path: Path,
    document: Document,
    patterns: Patterns = CATALOGUE,
    *,
    instead_of: Document | None = None,
) -> Checked:
    """Write a document that has no errors; ``instead_of`` is what the file must still hold."""
    checked = check(document, patterns)
    checked.sound()
    if instead_of is not None and read_flow(path).content != instead_of.content:
        raise FlowError(
            f"{path} was changed by somebody else meanwhile and was left as it is; "
            "read it again and repeat the change."
        )
    try:
        _replace(path, document.content)
    except OSError as wrong:
        raise FlowError(f"{path} cannot be written: {wrong.strerror}.") from None
    return checked


def _content(path: Path) -> bytes | None:
    # Not blocking, so that a pipe under the name of a flow cannot hold us up.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123  # no Path way
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        return file.read(MAX_BYTES + 1)


def _unreadable(path: Path, sentence: str) -> Document:
    problem = Problem(Rule.FILE, sentence, file=str(path))
    return Document(str(path), "", None, None, {}, (problem,))


def _replace(path: Path, content: bytes) -> None:
    """The old file or the new one, whatever happens; a link stays a link."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123  # a descriptor has no Path
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise
