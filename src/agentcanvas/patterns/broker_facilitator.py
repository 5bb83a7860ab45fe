"""broker_facilitator (P13): providers register what they can do, the broker finds the right one.

After the FIPA directory facilitator (SC00023): providers register, modify and deregister, each for
a lease; requesters ask for a capability; the broker searches what is registered and routes to those
whose lease still runs, those that did best so far first. A search asks each of them once at most.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from agentcanvas.pattern import Ask, Cast, Most, Outcome, Role, Size, Stage, Work
from agentcanvas.patterns.forms import Verdict

REQUESTER = "requester"
PROVIDER = "provider"
BROKER = "broker"
REGISTER = "register"


class Registration(msgspec.Struct, frozen=True):
    """What you can do, each in a word or two; nothing means that you are not to be asked."""

    capabilities: tuple[str, ...] = ()


class Query(msgspec.Struct, frozen=True):
    """The capability you need, and what you want of whoever has it."""

    capability: str
    question: str


class Options(msgspec.Struct, frozen=True):
    """``lease_ms`` is how long a registration holds; ``tries`` how many a search may ask."""

    lease_ms: Annotated[int, Meta(ge=1)] = 300_000
    tries: Annotated[int, Meta(ge=1)] = 3


class _Entry(msgspec.Struct):
    """One provider in the register, and how it did so far."""

    provider: str
    capabilities: tuple[str, ...] = ()
    until: int = 0
    good: int = 0
    asked: int = 0

    @property
    def success(self) -> float:
        """The share of good answers; who was never asked is taken to be as likely good as not."""
        return (self.good + 1) / (self.asked + 2)


class BrokerFacilitator:
    """Register, search, route, answer."""

    id = "broker_facilitator"
    options: type[msgspec.Struct] = Options
    roles = (
        Role(REQUESTER, "asks for a capability and says whether the answer is good", most=None),
        Role(PROVIDER, "says what it can do, and does it", most=None, writes=True),
        Role(BROKER, "keeps the register and routes; built in", least=0, system=True),
    )

    def most(self, size: Size, options: Options) -> Most:
        """Every requester asks, and each provider it is routed to registers again and answers."""
        requesters, providers = size.players.get(REQUESTER, 1), size.players.get(PROVIDER, 1)
        tries = min(options.tries, providers)
        one = size.typed + providers * size.typed + tries * (size.task + size.typed)
        return Most(requesters * one)

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Serve the requesters one after the other."""
        register = [_Entry(provider) for provider in cast[PROVIDER]]
        served: list[str] = []
        missing: list[str] = []
        for requester in cast[REQUESTER]:
            await _renew(stage, register, request, options)
            offered = sorted({word for entry in register for word in entry.capabilities})
            words = stage.words(
                "broker_facilitator.query", request=request, capabilities=", ".join(offered)
            )
            query = (await stage.ask_for(Query, requester, words)).value
            answer = query and await _route(stage, register, query, options, by=requester)
            if answer:
                served.append(f"{requester}: {answer}")
            else:
                missing.append(f"{requester}: {query.capability if query else 'no query'}")
            stage.keep("\n\n".join(served))
        result = "\n\n".join(served)
        if missing:
            return Outcome(f"not found: {', '.join(missing)}", done=False, result=result)
        return Outcome("answered", done=True, result=result)


async def _renew(stage: Stage, register: list[_Entry], request: str, options: Options) -> None:
    """Have those register whose lease is over; an empty answer takes them off the register."""
    now = await stage.now()
    due = [entry for entry in register if entry.until <= now]
    words = stage.words("broker_facilitator.register", request=request)
    answers = await stage.ask_all_for(Registration, [Ask(e.provider, words) for e in due])
    for entry, answer in zip(due, answers, strict=True):
        entry.capabilities = answer.value.capabilities if answer.value else ()
        entry.until = now + options.lease_ms
        known = ", ".join(entry.capabilities) or "nothing"
        await stage.post(REGISTER, f"{known} until {entry.until}", by=entry.provider)


async def _route(
    stage: Stage, register: list[_Entry], query: Query, options: Options, *, by: str
) -> str:
    """The first answer that the requester takes; empty if nobody gives one."""
    wanted = query.capability.casefold()
    able = [e for e in register if wanted in {word.casefold() for word in e.capabilities}]
    able.sort(key=lambda entry: -entry.success)
    for index, entry in enumerate(able[: options.tries], 1):
        if entry.until <= await stage.now():
            continue  # its lease ran out while others were asked
        words = stage.words("broker_facilitator.serve", question=query.question)
        work = Work(f"{by}-{index}", optional=True)
        answer = await stage.ask(entry.provider, words, work=work)
        entry.asked += 1
        if not answer.done:
            continue
        words = stage.words("broker_facilitator.take", question=query.question, answer=answer.text)
        verdict = (await stage.ask_for(Verdict, by, words)).value
        if verdict is not None and verdict.accept:
            entry.good += 1
            return answer.text
    return ""
