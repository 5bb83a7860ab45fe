"""broker_facilitator (P13): providers register what they can do, the broker finds the right one.

After the FIPA directory facilitator (SC00023): providers register, modify and deregister, each for
a lease; requesters ask for a capability; the broker searches what is registered and routes to those
whose lease still runs, those that did best so far first. A search asks each of them once at most.
"""

from __future__ import annotations

import msgspec

from agentcanvas.pattern import Ask, Cast, Most, Outcome, Role, Size, Stage, Work
from agentcanvas.patterns.forms import Positive, judged, picked, put
from agentcanvas.patterns.register import Register

REQUESTER, PROVIDER, BROKER = "requester", "provider", "broker"
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
        requesters, providers = size.count(REQUESTER), size.count(PROVIDER)
        tries = min(options.tries, providers)
        choices = min(tries, providers - 1) if size.count(BROKER) else 0
        each = {
            REQUESTER: (1 + tries) * size.typed,
            PROVIDER: providers * size.typed + tries * size.task,
            BROKER: choices * size.typed,
        }
        return Most.of({role: requesters * turns for role, turns in each.items()})

    async def run(self, stage: Stage, cast: Cast, request: str, options: Options) -> Outcome:
        """Serve the requesters one after the other."""
        register = Register(cast[PROVIDER])
        served: list[str] = []
        missing: list[str] = []
        for by in cast[REQUESTER]:
            await _renew(stage, register, request, options.lease_ms)
            facts = {"request": request, "capabilities": register.abilities}
            query = (await put(stage, Query, by, "broker_facilitator.query", **facts)).value
            answer = query and await _route(stage, cast, register, query, by=by, options=options)
            if answer is None:
                missing.append(f"{by}: {query.capability if query else 'no query'}")
            else:
                served.append(f"{by}: {answer}")
            stage.keep("\n\n".join(served))
        reason = f"not found: {', '.join(missing)}" if missing else "answered"
        return Outcome(reason, done=not missing, result="\n\n".join(served))


async def _renew(stage: Stage, register: Register, request: str, lease_ms: int) -> None:
    """Have those register whose lease is over; an empty answer takes them off the register."""
    now = await stage.now()
    words = stage.words("broker_facilitator.register", request=request)
    await stage.hand_over([Ask(name, words) for name in register.due(now)], Registration)
    while came := await stage.collect():
        for ask, answer in came:
            abilities, until = answer.value.capabilities if answer.value else (), now + lease_ms
            register.enter(ask.to, abilities, until)
            known = ", ".join(abilities) or "nothing"
            await stage.post(REGISTER, f"{known} until {until}", by=ask.to)


async def _route(
    stage: Stage, cast: Cast, register: Register, query: Query, *, by: str, options: Options
) -> str | None:
    """The first answer that the requester takes; each who can do it is asked once at most."""
    asked: list[str] = []
    while len(asked) < options.tries:
        now = await stage.now()
        able = [name for name in register.able(query.capability, now) if name not in asked]
        if not able:
            return None  # nobody is left, or the leases ran out while others were asked
        facts = {"question": query.question, "providers": register.described(able)}
        words = stage.words("broker_facilitator.choose", **facts)
        provider = await picked(stage, cast.get(BROKER, ()), words, able)
        asked.append(provider)
        words = stage.words("broker_facilitator.serve", question=query.question)
        work = Work(f"{by}-{len(asked)}", optional=True)
        answer = await stage.ask(provider, words, work=work)
        facts = {"question": query.question, "answer": answer.text}
        good = answer.done and (await judged(stage, by, "broker_facilitator.take", **facts)).accept
        register.note(provider, good=good)
        if good:
            return answer.text
    return None
