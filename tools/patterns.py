"""Writes what follows from the patterns' declarations: templates, and the reference in their docs.

``python -m tools.patterns`` writes ``patterns/templates/<id>.json`` and, in
``docs/patterns/<id>.md``, what stands between ``<!-- generated: reference -->`` and
``<!-- end -->``; the prose around it is written by hand and kept. With ``--check`` it says whether
the files are what it would write.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from agentcanvas.app.patterns import KNOWN
from agentcanvas.flows.bounds import bounds
from agentcanvas.flows.model import Flow
from agentcanvas.flows.pattern_info import PatternInfo
from agentcanvas.flows.subgraph import Node, subgraph, template
from agentcanvas.pattern import Pattern
from agentcanvas.patterns import PATTERNS
from agentcanvas.patterns.wording import WORDING

ROOT = Path(__file__).parent.parent
TEMPLATES = ROOT / "src" / "agentcanvas" / "patterns" / "templates"
DOCS = ROOT / "docs" / "patterns"
EXAMPLES = ROOT / "examples"
BEGIN, END = "<!-- generated: {} -->", "<!-- end -->"


def files() -> Iterator[tuple[Path, str]]:
    """Every file, and what should be in it."""
    runnable = {pattern.id: pattern for pattern in PATTERNS}
    for name, info in KNOWN.items():
        if name not in runnable:
            continue
        text = json.dumps(template(info), indent=2, ensure_ascii=False) + "\n"
        yield TEMPLATES / f"{name}.json", text
        page = DOCS / f"{name}.md"
        yield page, _filled(page, name, "reference", reference(info, runnable[name]))
    yield DOCS / "README.md", _filled(DOCS / "README.md", "Patterns", "index", _index(runnable))


def reference(info: PatternInfo, pattern: Pattern) -> str:
    """What a page says of a pattern that the code knows better than any writer."""
    parts = [
        "## Reference",
        _table(("role", "how many", "what it does", ""), _roles(info, pattern)),
        f"As it stands on the canvas, its edges labelled `{subgraph(info).label}`:",
        _picture(info),
        "### Options",
        "Set under `data.params` of the interaction.",
        *_options(pattern),
        "### Ends",
        "\n".join(f"- `{json.dumps(each)}`" for each in msgspec.to_builtins(info.termination)),
        f"Topology: {' or '.join(f'`{each.value}`' for each in info.topologies)}. {_sync(info)}",
        "### At most",
        _worst(info),
        *_prompts(info.id),
        *_example(info.id),
    ]
    return "\n\n".join(filter(None, parts))


def _filled(page: Path, title: str, block: str, text: str) -> str:
    """A page with its generated block anew; at its end, if it has none yet."""
    before = page.read_text("utf-8") if page.exists() else f"# {title}\n"
    begin = BEGIN.format(block)
    head, marker, rest = before.partition(begin)
    tail = rest.partition(END)[2].lstrip() if marker else ""
    after = f"\n{tail}" if tail else ""
    return f"{head.rstrip()}\n\n{begin}\n{text}\n{END}\n{after}"


def _index(runnable: Mapping[str, Pattern]) -> str:
    rows = [
        (
            f"[{name}]({name}.md)",
            _what_for(name),
            ", ".join(role.name for role in info.roles),
        )
        for name, info in KNOWN.items()
        if name in runnable
    ]
    return _table(("pattern", "what for", "roles"), rows)


def _what_for(name: str) -> str:
    """The first sentence of its page."""
    page = DOCS / f"{name}.md"
    prose = page.read_text("utf-8").partition("\n\n")[2] if page.exists() else ""
    return " ".join(prose.partition("\n\n")[0].split()).partition(". ")[0].removesuffix(".")


def _roles(info: PatternInfo, pattern: Pattern) -> list[tuple[str, ...]]:
    duties = {role.name: role.duty for role in pattern.roles}
    return [
        (
            f"`{role.name}`",
            role.count,
            duties.get(role.name, ""),
            ", ".join(
                words
                for words, holds in (("system node", role.system), ("changes files", role.writes))
                if holds
            ),
        )
        for role in info.roles
    ]


def _picture(info: PatternInfo) -> str:
    found = subgraph(info)
    lines = [f"    {_shape(node)}" for node in found.nodes]
    lines += [f"    {edge.source} --> {edge.target}" for edge in found.interaction.edges]
    return "\n".join(["```mermaid", "flowchart LR", *lines, "```"])


def _shape(node: Node) -> str:
    words = node.id.replace("_", " ")
    return f"{node.id}{{{{{words}}}}}" if node.system else f"{node.id}[{words}]"


def _options(pattern: Pattern) -> list[str]:
    fields = msgspec.structs.fields(pattern.options)
    rows = [(f"`{field.name}`", f"`{_shown(field)}`") for field in fields]
    words = inspect.cleandoc(pattern.options.__doc__ or "").replace("``", "`")
    if not rows:
        return ["None."]
    return [_table(("option", "default"), rows), words]


def _shown(field: msgspec.structs.FieldInfo) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return json.dumps(msgspec.to_builtins(field.default_factory()))
    if field.default is msgspec.NODEFAULT:
        return "needed"
    return json.dumps(msgspec.to_builtins(field.default))


def _sync(info: PatternInfo) -> str:
    """How its turns may follow each other."""
    own = f"Sync: `{info.sync.value}` if the flow does not say."
    return own if info.goes_on else f"{own} It needs every answer first, so `async` is refused."


def _worst(info: PatternInfo) -> str:
    found = subgraph(info)
    flow = Flow(version="0.2", agents=found.agents, interactions=(found.interaction,))
    total = bounds(flow, KNOWN).total
    most = f"{_count(total.turns, 'turn')} and {_count(total.messages, 'message')}"
    return f"With the team above: {most} (`agentcanvas flow bounds`)."


def _count(number: int | None, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{'an unbounded number of' if number is None else f'{number:,}'} {noun}s"


def _prompts(name: str) -> list[str]:
    own = sorted(each for each in WORDING.templates if each.startswith(f"{name}."))
    if not own:
        return []
    listed = "\n".join(f"- `{each}.md`" for each in own)
    where = "Yours go before them, by the same name, in `.agentcanvas/prompts/`."
    return ["### Prompts", listed, where]


def _example(name: str) -> list[str]:
    flow = EXAMPLES / name / "flow.yaml"
    if not flow.exists():
        return []
    text = flow.read_text("utf-8").rstrip()
    return [
        "### Example",
        f"`examples/{name}/flow.yaml`, with scripted agents:",
        f"```yaml\n{text}\n```",
    ]


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> int:
    """Write, or check."""
    wanted = list(files())
    if "--check" in sys.argv:
        old = [
            path.relative_to(ROOT)
            for path, text in wanted
            if not path.exists() or path.read_text("utf-8") != text
        ]
        for path in old:
            sys.stderr.write(f"{path} is out of date; write it anew: make schema\n")
        return 1 if old else 0
    for path, text in wanted:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    sys.stdout.write(f"{len(wanted)} templates and pages of patterns written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
