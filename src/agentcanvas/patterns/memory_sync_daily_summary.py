"""memory_sync_daily_summary (P19): private logs, one summary, and every insight says whence.

After the reflections of Generative Agents (arXiv 2304.03442): at the end of a session everybody
hands in what it noticed, without seeing the others; the curator draws insights from it, each with
the entries it rests on; they go on the shared board and to memory, once. An insight that cites
nothing that is there is left out. Without a curator each entry is an insight, told once.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from agentcanvas.pattern import Ask, Cast, Most, Outcome, Role, Size, Stage
from agentcanvas.patterns.forms import Positive

AGENT = "agent"
CURATOR = "memory_curator"
SHARED = "shared"


class Log(msgspec.Struct, frozen=True):
    """What you noticed that others should know later, an entry each."""

    entries: tuple[str, ...] = ()


class Insight(msgspec.Struct, frozen=True):
    """One thing worth remembering, and the ids of the entries it rests on."""

    text: str
    sources: tuple[str, ...]


class Summary(msgspec.Struct, frozen=True):
    """The insights, the most important first."""

    insights: tuple[Insight, ...] = ()


class Options(msgspec.Struct, frozen=True):
    """``max_insights`` are kept at most."""

    max_insights: Positive = 10


class MemorySyncDailySummary:
    """Collect, summarise, share."""

    id = "memory_sync_daily_summary"
    options: type[msgspec.Struct] = Options
    roles = (
        Role(AGENT, "hands in what it noticed", most=None),
        Role(CURATOR, "draws insights; else every entry is one", least=0, system=True),
    )

    def most(self, size: Size, options: Options) -> Most:
        """A log each, and one summary."""
        del options
        return Most.of({role: size.count(role) * size.typed for role in (AGENT, CURATOR)})

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """One summary."""
        words = stage.words("memory_sync_daily_summary.log", request=request)
        await stage.hand_over([Ask(agent, words) for agent in cast[AGENT]], Log)
        entries: dict[str, str] = {}
        while came := await stage.collect():
            for ask, answer in came:
                noticed = answer.value.entries if answer.value else ()
                entries |= {f"{ask.to}:{number}": entry for number, entry in enumerate(noticed, 1)}
            stage.keep("\n".join(f"{id_}: {entry}" for id_, entry in entries.items()))
        if not entries:
            return Outcome("nothing was noticed", done=True)
        insights = await _insights(stage, cast, request, entries)
        kept = [each for each in insights if each.sources and entries.keys() >= set(each.sources)]
        for insight in kept[: options.max_insights]:
            sources = [f"{source} {entries[source]}" for source in insight.sources]
            await stage.post(SHARED, f"{insight.text} ({', '.join(insight.sources)})")
            await stage.note(insight.text, sources)
        told = "\n".join(entry.text for entry in await stage.read(SHARED))
        left = len(insights) - len(kept)
        but = f", {left} without sources left out" if left else ""
        return Outcome(f"summarised: {len(entries)} entries{but}", done=bool(kept), result=told)


async def _insights(
    stage: Stage, cast: Cast, request: str, entries: Mapping[str, str]
) -> tuple[Insight, ...]:
    if not cast.get(CURATOR):
        same: dict[str, list[str]] = {}
        for id_, entry in entries.items():
            same.setdefault(entry.strip(), []).append(id_)
        return tuple(Insight(entry, tuple(ids)) for entry, ids in same.items())
    listed = "\n".join(f"{id_}: {entry}" for id_, entry in entries.items())
    words = stage.words("memory_sync_daily_summary.summarise", request=request, entries=listed)
    summary = (await stage.ask_for(Summary, cast[CURATOR][0], words)).value
    return summary.insights if summary is not None else ()
