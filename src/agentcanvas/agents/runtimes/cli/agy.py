"""Antigravity CLI, from its documentation alone: it is in no registry, and nobody has driven it.

It prints its answer as plain text and logs in by a browser only, so that it needs a login of its
own (``agentcanvas login agy``). Early versions print nothing where there is no terminal, which is
then told as a failure.
"""

from __future__ import annotations

from agentcanvas.agents.cli.adapter import Adapter, Ask, Facts, Invocation, Reader
from agentcanvas.agents.cli.heard import Heard
from agentcanvas.agents.cli.words import with_images, with_system

FACTS = Facts(
    id="agy",
    title="Antigravity CLI",
    programs=("agy",),
    install="see antigravity.google",
    oldest=(1, 0),
    credentials=(".gemini/antigravity-cli",),
    hosts=("*.googleapis.com", "accounts.google.com", "antigravity.google"),
    resumes=False,
    speaks_mcp=False,
    lacks=("a test: untried", "a stream: only its last words are known", "counts of tokens"),
)


def invoke(ask: Ask) -> Invocation:
    """Ask once; the prompt is a word."""
    argv = ["agy"]
    if ask.confined:
        argv.append("--dangerously-skip-permissions")
    if ask.model.model:
        argv += ["--model", ask.model.model]
    argv += ["-p", with_system(ask, with_images(ask))]
    return Invocation(argv=tuple(argv), env={"AGY_CLI_DISABLE_AUTO_UPDATE": "true"})


class AgyReader(Reader):
    """Whatever it prints is its answer."""

    def line(self, text: str) -> None:
        """Take a line."""
        self.heard.add(f"{text}\n")

    def close(self) -> None:
        """Take the end: something was said, or nothing."""
        self.heard.close()
        if self.heard.answer.strip():
            self.heard.end(self.heard.answer.strip())


def _reader(heard: Heard) -> AgyReader:
    return AgyReader(heard)


ADAPTER = Adapter(facts=FACTS, invoke=invoke, reader=_reader)
