"""A real Chromium, driven over its own debugging pipe.

The pipe needs no port, no driver and no package: commands are JSON ended by a NUL byte. Only the
few that the tests use have a name here. Waiting happens inside the page, on what it shows.
"""

from __future__ import annotations

import base64
import json
import os
import queue
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PATIENCE_S = 20
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"

FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--hide-scrollbars",
    "--no-proxy-server",
    "--password-store=basic",
    "--use-mock-keychain",
)

# The debugging pipe is file 3 for reading and file 4 for writing.
START = 'exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null'

WAIT = """
new Promise((done, fail) => {
  const until = performance.now() + %d;
  (function look() {
    const found = (%s);
    if (found) done(found instanceof Node ? true : found);
    else if (performance.now() > until) fail(new Error("still not so: " + %s));
    else setTimeout(look, 15);
  })();
})
"""

KEYS: Mapping[str, Mapping[str, Any]] = {
    "Tab": {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9},
    "Enter": {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
    "PageUp": {"key": "PageUp", "code": "PageUp", "windowsVirtualKeyCode": 33},
    "Home": {"key": "Home", "code": "Home", "windowsVirtualKeyCode": 36},
    "ArrowDown": {"key": "ArrowDown", "code": "ArrowDown", "windowsVirtualKeyCode": 40},
    "Escape": {"key": "Escape", "code": "Escape", "windowsVirtualKeyCode": 27},
    "/": {"key": "/", "code": "Slash", "windowsVirtualKeyCode": 191, "text": "/"},
    "f": {"key": "f", "code": "KeyF", "windowsVirtualKeyCode": 70, "text": "f"},
}


def _letter(name: str) -> Mapping[str, Any]:
    """The key that types one plain character."""
    assert len(name) == 1, f"the key {name} has no line in KEYS"
    code = f"Key{name.upper()}" if name.isalpha() else ""
    return {"key": name, "code": code, "windowsVirtualKeyCode": ord(name.upper()), "text": name}


# Read before the tests put the user's settings aside.
NAMED = os.environ.get("AGENTCANVAS_BROWSER")


class BrowserError(Exception):
    """The browser refused a command, or a wait in the page was in vain."""


def find_browser() -> str | None:
    """The browser of this machine, if it has one that can be driven."""
    found = NAMED or next(filter(None, map(shutil.which, NAMES)), None)
    return found or (MAC if Path(MAC).exists() else None)


class Browser:
    """One browser process with a profile of its own."""

    def __init__(self, program: str, profile: Path) -> None:
        root = ("--no-sandbox",) if os.geteuid() == 0 else ()
        self._log = (profile.parent / "browser.log").open("wb")
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", START, program, *FLAGS, *root, f"--user-data-dir={profile}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "HOME": str(profile.parent)},
        )
        self._answers: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._pages: dict[str, Page] = {}
        self._sending = threading.Lock()
        self._last = 0
        self._reader = threading.Thread(target=self._read, name="browser pipe", daemon=True)
        self._reader.start()

    def open(
        self,
        *,
        width: int = 1280,
        height: int = 800,
        theme: str = "dark",
        beside: Page | None = None,
    ) -> Page:
        """A new tab, alone with its cookies, or beside another one of the same person."""
        context = (
            beside.context
            if beside
            else self.call("Target.createBrowserContext")["browserContextId"]
        )
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        page = Page(self, attached["sessionId"], context)
        self._pages[attached["sessionId"]] = page
        for domain in ("Page", "Runtime", "Log"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        page.prefer(theme)
        return page

    def call(self, method: str, *, session: str | None = None, **params: Any) -> dict[str, Any]:
        """One command and its result."""
        answer: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        with self._sending:
            self._last += 1
            number = self._last
            self._answers[number] = answer
            message = {"id": number, "method": method, "params": params}
            if session is not None:
                message["sessionId"] = session
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(message).encode() + b"\0")
            self._process.stdin.flush()
        told = answer.get(timeout=2 * PATIENCE_S)
        if "error" in told:
            raise BrowserError(f"{method}: {told['error']['message']}")
        result: dict[str, Any] = told["result"]
        return result

    def _read(self) -> None:
        assert self._process.stdout is not None
        rest = b""
        while chunk := os.read(self._process.stdout.fileno(), 1 << 16):
            *messages, rest = (rest + chunk).split(b"\0")
            for message in messages:
                self._dispatch(json.loads(message))

    def _dispatch(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answers.pop(message["id"]).put(message)
        elif page := self._pages.get(message.get("sessionId", "")):
            page.hear(message["method"], message["params"])

    def close(self) -> None:
        """End the browser and everything it started."""
        self.call("Browser.close")
        self._process.wait(timeout=PATIENCE_S)
        self._reader.join(timeout=PATIENCE_S)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._log.close()


@dataclass
class Page:
    """One tab: what a person could do with it, and what it complained about."""

    browser: Browser
    session: str
    context: str = ""
    complaints: list[str] = field(default_factory=list)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.call(method, session=self.session, **params)

    def hear(self, method: str, params: dict[str, Any]) -> None:
        match method, params:
            case "Runtime.exceptionThrown", {"exceptionDetails": details}:
                self.complaints.append(f"{details.get('text')}: {details.get('exception')}")
            case "Runtime.consoleAPICalled", {"type": "error" | "warning" as kind, "args": words}:
                self.complaints.append(f"{kind}: {words}")
            case "Log.entryAdded", {"entry": {"level": "error" | "warning", "text": text} as entry}:
                self.complaints.append(" ".join(filter(None, (text, entry.get("url")))))
            case _:
                pass

    def goto(self, address: str) -> None:
        self.call("Page.navigate", url=address)

    def look(self, expression: str) -> Any:
        """The value of an expression in the page, which may be a promise."""
        told = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in told:
            details = told["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return told["result"].get("value")

    def wait_for(self, expression: str) -> Any:
        """The value of an expression, once it is something."""
        return self.look(WAIT % (PATIENCE_S * 1000, expression, json.dumps(expression)))

    def wait_for_text(self, selector: str, text: str) -> None:
        found = f"[...document.querySelectorAll({json.dumps(selector)})]"
        self.wait_for(f"{found}.some((one) => one.textContent.includes({json.dumps(text)}))")

    def texts(self, selector: str) -> Sequence[str]:
        found: list[str] = self.look(
            f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.textContent)"
        )
        return found

    def press(self, name: str) -> None:
        key = KEYS.get(name) or _letter(name)
        self.call("Input.dispatchKeyEvent", type="keyDown", **key)
        self.call("Input.dispatchKeyEvent", type="keyUp", **{**key, "text": ""})

    def type(self, text: str) -> None:
        """Put text where the focus is, as if it were typed."""
        self.call("Input.insertText", text=text)

    def keys(self, text: str) -> None:
        """Press one key after the other."""
        for letter in text:
            code = {"key": letter, "text": letter, "unmodifiedText": letter}
            self.call("Input.dispatchKeyEvent", type="keyDown", **code)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=letter)

    def command_bar(self) -> None:
        """Press Ctrl and K."""
        key = {"key": "k", "code": "KeyK", "windowsVirtualKeyCode": 75, "modifiers": 2}
        self.call("Input.dispatchKeyEvent", type="rawKeyDown", **key)
        self.call("Input.dispatchKeyEvent", type="keyUp", **key)
        self.wait_for("document.querySelector('[cmdk-input]') === document.activeElement")

    def click(self, selector: str) -> None:
        box = self.wait_for(
            f"document.querySelector({json.dumps(selector)})?.getBoundingClientRect().toJSON()"
        )
        place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    def wheel(self, selector: str, by: int) -> None:
        """Turn the wheel over an element; returns when the page has scrolled."""
        box = self.look(
            f"document.querySelector({json.dumps(selector)}).getBoundingClientRect().toJSON()"
        )
        place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        self.call("Input.dispatchMouseEvent", type="mouseWheel", deltaX=0, deltaY=by, **place)

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, theme: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": theme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def shoot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
