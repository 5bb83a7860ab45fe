"""aider: plain text without tools; it edits by blocks in its answer, and ends with 0 always."""

from __future__ import annotations

import re

from agentcanvas.agents.cli.adapter import Adapter, Ask, Facts, Invocation, Reader
from agentcanvas.agents.cli.heard import Heard
from agentcanvas.agents.cli.providers import ANTHROPIC, OPENAI, Api
from agentcanvas.agents.cli.words import with_system
from agentcanvas.protocol.records import Usage

FACTS = Facts(
    id="aider",
    title="aider",
    programs=("aider",),
    install="pipx install aider-chat",
    oldest=(0, 80),
    tested="0.86.2",
    tested_on="2026-11-18",
    providers=(ANTHROPIC, OPENAI),
    hosts=("api.anthropic.com", "api.openai.com"),
    litter=(".aider.chat.history.md", ".aider.input.history", ".aider.tags.cache.v4"),
    speaks_mcp=False,
    lacks=("commands: it only edits files", "MCP servers", "a limit on turns", "a JSON stream"),
)

_FLAGS = (
    "--yes-always",
    "--no-pretty",
    "--no-stream",
    "--no-show-model-warnings",
    "--no-check-update",
    "--no-show-release-notes",
    "--analytics-disable",
    "--no-suggest-shell-commands",
    "--no-auto-commits",
    "--no-gitignore",
    "--no-detect-urls",
    "--no-fancy-input",
    "--map-tokens",
    "0",
)
_HISTORY = ".aider/history.md"
# Without it, it asks GitHub for a list of prices.
_PRICES = ".aider/caches/model_prices_and_context_window.json"
_USUAL = {Api.ANTHROPIC: "claude-sonnet-4-5", Api.CHAT: "gpt-5.5"}
_SESSION = "aider-history"

_APPLIED = re.compile(r"^Applied edit to (.+)$")
_TOKENS = re.compile(r"^Tokens: ([\d.,]+)(k|M)? sent(?:,.*?)?, ([\d.,]+)(k|M)? received\.")
_COST = re.compile(r"Cost: \$([\d.]+) message")
_RETRYING = re.compile(r"^Retrying in ([\d.]+) seconds")
_ERROR = re.compile(r"^(?:litellm\.\w*(?:Error|Exception)\b.*|.*\bError: .*)$")
_WENT_WRONG = re.compile(
    r"^(?:litellm\.|The API provider|.*did not conform to the edit format|"
    r"Only 3 reflections allowed)"
)
_HEAD_ENDS = "Repo-map:"
_FRAME = re.compile(
    r"^(?:Aider v|Model: |Main model: |Weak model: |Git repo: |Repo-map: |Analytics |Detected dumb|"
    r"Added .* to the chat|Restored previous conversation|Warning|https?://|─+$|Use /help)"
)


def invoke(ask: Ask) -> Invocation:
    """Ask once, with the prompt on stdin; its history in HOME is its session."""
    history = ask.home / _HISTORY
    argv = ["aider", *_FLAGS, "--message-file", "/dev/stdin"]
    argv += ["--chat-history-file", str(history), "--input-history-file", "/dev/null"]
    if ask.resume:
        argv.append("--restore-chat-history")
    for image in ask.images:
        argv += ["--read", str(image)]
    # It breaks lines at the width of its terminal, also where there is none.
    env = {"COLUMNS": "1000000", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    model = ask.model
    if model.key:
        name = model.model or _USUAL.get(model.api, _USUAL[Api.CHAT])
        prefix = "anthropic" if model.api is Api.ANTHROPIC else "openai"
        argv += ["--model", f"{prefix}/{name}", "--edit-format", "diff"]
        if model.api is Api.ANTHROPIC:
            env |= {"ANTHROPIC_API_KEY": model.key, "ANTHROPIC_API_BASE": model.url}
        else:
            env |= {"OPENAI_API_KEY": model.key, "OPENAI_API_BASE": model.url}
    elif model.model:
        argv += ["--model", model.model]
    files = {_PRICES: '{"sample_spec": {}}\n'}
    prompt = ask.prompt if ask.resume else with_system(ask)
    return Invocation(argv=tuple(argv), env=env, stdin=prompt, files=files, session=_SESSION)


class AiderReader(Reader):
    """Reads its plain text: what is not about its work is its answer."""

    def __init__(self, heard: Heard) -> None:
        super().__init__(heard)
        self._answer: list[str] = []
        self._size = 0
        self._worked = False
        self._waits = 0
        self._trouble: list[str] = []

    def line(self, text: str) -> None:
        """Take a line."""
        if match := _TOKENS.match(text):
            self._count(match, text)
        elif match := _APPLIED.match(text):
            self.heard.change(match[1])
        elif match := _RETRYING.match(text):
            self._waits += 1
            self.heard.retry(self._waits, self._told, float(match[1]) * 1000)
            self._trouble = []
        elif _WENT_WRONG.match(text) or self._trouble or _ERROR.match(text):
            self._note_trouble(text)
        elif text.startswith(_HEAD_ENDS):
            self._drop_head(text)
        elif _FRAME.match(text) and not self._answer:
            self.heard.aside(text)
        else:
            self._say(text)

    @property
    def _told(self) -> str:
        return " ".join(self._trouble) or "the model did not answer"

    def _note_trouble(self, text: str) -> None:
        """An error goes on over several lines."""
        if not text.strip():
            return
        if len(self._trouble) < _MOST_TROUBLE:
            self._trouble.append(text.strip())
        self.heard.fail(self._told)

    def _drop_head(self, text: str) -> None:
        """What stood before the last line of its head was about itself."""
        for line in (*self._answer, text):
            self.heard.aside(line)
        self._answer = []

    def _say(self, text: str) -> None:
        if self._size < _LONGEST_ANSWER and (self._answer or text.strip()):
            self._answer.append(text)
            self._size += len(text) + 1

    def _count(self, match: re.Match[str], line: str) -> None:
        self._worked = True
        self._trouble = []
        self.heard.recover()
        if self._answer:
            self.heard.say("\n".join(self._answer).strip())
            self._answer = []
        cost = _COST.search(line)
        usage = Usage(
            input_tokens=_tokens(match[1], match[2]), output_tokens=_tokens(*match.group(3, 4))
        )
        if cost and (price := _number(cost[1])) is not None:
            usage = Usage(
                input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cost=price
            )
        self.heard.count(usage, more=True)

    def close(self) -> None:
        """At the end it has worked if it counted its tokens."""
        if self._worked and self.heard.failure is None:
            self.heard.end()
        elif not self._worked and self._answer:
            for line in self._answer:
                self.heard.raw(line)


_MOST_TROUBLE = 6
_LONGEST_ANSWER = 2_000_000


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", "").rstrip("."))
    except ValueError:
        return None


def _tokens(text: str, unit: str | None) -> int:
    number = _number(text) or 0.0
    return round(number * {"k": 1_000, "M": 1_000_000}.get(unit or "", 1))


def _reader(heard: Heard) -> AiderReader:
    return AiderReader(heard)


ADAPTER = Adapter(facts=FACTS, invoke=invoke, reader=_reader)
