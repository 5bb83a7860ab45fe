"""broker_facilitator (P13): providers register what they can do, the broker finds the right one.

After the FIPA directory facilitator (SC00023): providers register, modify and deregister, each for
a lease; requesters ask for a capability; the broker searches what is registered and routes to those
whose lease still runs, those that did best so far first. A search asks each of them once at most.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from agentcanvas.pattern import Ask, Cast, Most, Outcome, Role, Size, Stage, Work
from agentcanvas.patterns.forms import Positive, Verdict

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

    lease_ms: Positive = 300_000
    tries: Positive = 3


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
        Role(BROKER, "chooses among the able; else who did best so far", least=0, system=True),
    )

    def most(self, size: Size, options: Options) -> Most:
        """Every requester asks, and each provider it is routed to registers again and answers."""
        requesters, providers = size.players.get(REQUESTER, 1), size.players.get(PROVIDER, 1)
        tries = min(options.tries, providers)
        one = size.typed + providers * size.typed + tries * (size.task + 2 * size.typed)
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
            able = _able(register, query)
            answer = query and await _route(stage, cast, able, query, by=requester, options=options)
            if answer is not None:
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


def _able(register: Sequence[_Entry], query: Query | None) -> list[_Entry]:
    """Those who can do it, the most successful first, and of equals as they are listed."""
    wanted = query.capability.casefold() if query else ""
    able = [e for e in register if wanted in {word.casefold() for word in e.capabilities}]
    return sorted(able, key=lambda entry: -entry.success)


async def _route(
    stage: Stage, cast: Cast, able: list[_Entry], query: Query, *, by: str, options: Options
) -> str | None:
    """The first answer that the requester takes; each of the able is asked once at most."""
    for index in range(1, min(options.tries, len(able)) + 1):
        now = await stage.now()
        able = [entry for entry in able if entry.until > now]
        if not able:
            return None  # the leases ran out while others were asked
        entry = await _next(stage, cast, able, query)
        able.remove(entry)
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
    return None


async def _next(stage: Stage, cast: Cast, able: Sequence[_Entry], query: Query) -> _Entry:
    if not cast.get(BROKER) or len(able) == 1:
        return able[0]
    told = [f"- {e.provider}: {', '.join(e.capabilities)} ({e.success:.2f})" for e in able]
    words = stage.words(
        "broker_facilitator.choose", question=query.question, providers="\n".join(told)
    )
    chosen = await stage.decide(cast[BROKER][0], words, [entry.provider for entry in able])
    return next((entry for entry in able if entry.provider == chosen.value), able[0])
