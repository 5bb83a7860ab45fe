"""For each pattern a variant that breaks its rule, to see that the rule can be broken and is seen.

Each is as short as it can be: it does the one thing wrong that the source forbids.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from agentcanvas.pattern import Ask, Cast, Most, Outcome, Pattern, Play, Role, Size, Stage, Work
from agentcanvas.patterns.bilateral_negotiation_offer_counteroffer import Offer
from agentcanvas.patterns.broker_facilitator import Query, Registration
from agentcanvas.patterns.chat_chain_pipeline import DUTIES
from agentcanvas.patterns.contract_net_auction import Bid
from agentcanvas.patterns.critic_refiner_curator import Flaw
from agentcanvas.patterns.factcheck_tool_verifier import Claims
from agentcanvas.patterns.forms import Steps, Vote
from agentcanvas.patterns.memory_sync_daily_summary import Log, Summary
from agentcanvas.patterns.plan_execute_observe_reflect import Observation
from agentcanvas.patterns.self_consistency_ensemble import Sample
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.dialects import encode
from agentcanvas.protocol.envelope import AgentRef, Envelope
from agentcanvas.protocol.kinds import Kind, TaskAssign, TaskResult
from agentcanvas.protocol.plan import Plan
from agentcanvas.protocol.timestamps import format_ms
from agentcanvas.protocol.values import freeze
from tests.patterns.team import BY_ID

Run = Callable[[Stage, Cast, str, Any], Awaitable[Outcome]]

BROKEN: dict[str, Pattern] = {}


class _Broken:
    """A pattern with another's face and a way of its own."""

    def __init__(self, id_: str, run: Run) -> None:
        self.id = id_
        self._run = run
        self.roles: tuple[Role, ...] = BY_ID[id_].roles
        self.options: type[msgspec.Struct] = BY_ID[id_].options

    def most(self, size: Size, options: Any) -> Most:
        return BY_ID[self.id].most(size, options)

    async def run(self, stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
        return await self._run(stage, cast, request, options)


def broken(run: Run) -> Run:
    """Enter it under the pattern's name."""
    id_ = run.__name__
    BROKEN[id_] = _Broken(id_, run)
    return run


@broken
async def manager_worker(stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
    """Keeps a report from the manager."""
    plan = (await stage.ask_for(Plan, cast["manager"][0], request)).value
    assert plan
    await stage.ask(cast["worker"][0], plan.tasks[0].description, work=Work("a"))
    return Outcome("done", done=True, result=(await stage.ask(cast["manager"][0], "Well?")).text)


@broken
async def role_play_pair(stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
    """Goes on after the roles were swapped."""
    for _ in range(3):
        await stage.ask(cast["user"][0], request)
        await stage.ask(cast["assistant"][0], request)
    return Outcome("max_rounds: 3", done=False)


@broken
async def chat_chain_pipeline(stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
    """Hands the whole dialogue on."""
    dialogue = request
    for name in DUTIES:
        draft = await stage.ask(cast[name][0], dialogue, work=Work(name))
        dialogue += draft.text
        await stage.post("conclusions", "something else", by=draft.agent)
    return Outcome("concluded", done=True, result=dialogue)


@broken
async def sop_assembly_line(stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
    """Has the engineer begin before there is a design."""
    await stage.post("requirements", "clean plates")
    code = await stage.ask(cast["engineer"][0], request, work=Work("code"))
    return Outcome("accepted", done=True, result=code.text)


@broken
async def debate_judge(stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
    """Tells the judge who said what."""
    said = [await stage.ask(each, request) for each in cast["debater"]]
    transcript = "\n".join(f"{each.agent}: {each.text}" for each in said)
    verdict = await stage.decide(cast["judge"][0], transcript, options.sides)
    return Outcome(f"judge_decision: {verdict.value}", done=True)


@broken
async def critic_refiner_curator(stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
    """Has everything redone, and learns from it at once."""
    steps = (await stage.ask_for(Steps, cast["refiner"][0], request)).value
    while steps is not None and len(steps.steps) > 1:
        told = "\n".join(f"{n}. {step}" for n, step in enumerate(steps.steps, 1))
        await stage.ask_for(Flaw, cast["critic"][0], told)
        await stage.ask(cast["curator"][0], told)
        steps = (await stage.ask_for(Steps, cast["refiner"][0], request)).value
    await stage.ask_for(Flaw, cast["critic"][0], "1. dry and stack")
    return Outcome("quality_gate: converged >= 1", done=True)


@broken
async def majority_vote_with_tiebreak(
    stage: Stage, cast: Cast, request: str, options: Any
) -> Outcome:
    """Lets each see the ballots before."""
    votes: list[str] = []
    for voter in cast["evaluator"]:
        vote = await stage.ask_for(Vote, voter, "\n".join([request, *votes]))
        votes.append(vote.text)
    return Outcome("tie_break: wash by whim", done=True)


@broken
async def self_consistency_ensemble(
    stage: Stage, cast: Cast, request: str, options: Any
) -> Outcome:
    """Takes the first answer and counts everybody."""
    asks = [Ask(each, request) for each in cast["sampler"]]
    samples = await stage.ask_all_for(Sample, asks)
    first = next(each.value.answer for each in samples if each.value)
    await stage.ask_all_for(Sample, asks)
    return Outcome(f"majority: 1 of {len(samples)}", done=True, result=first)


@broken
async def contract_net_auction(stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
    """Waits for late bids, and awards whoever comes first."""
    call = stage.words("contract_net_auction.call", request=request)
    await stage.bid(Bid, cast["bidder"], call, within_ms=options.bid_within_ms)
    for bidder in ("dear", "slow"):
        await stage.ask(bidder, request, work=Work(bidder))
    return Outcome("done", done=True)


@broken
async def bilateral_negotiation_offer_counteroffer(
    stage: Stage, cast: Cast, request: str, options: Any
) -> Outcome:
    """Lets a side go back behind its own offer."""
    for _ in range(2):
        for side in (*cast["proposer"], *cast["responder"]):
            offer = (await stage.ask_for(Offer, side, request)).value
            await stage.post("offers", f"{offer.value if offer else 0:g}", by=side)
    return Outcome("max_rounds: 2", done=False, result="somewhere between")


@broken
async def blackboard_shared_state(stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
    """Has them talk to each other, and forgets what was added."""
    added = await stage.ask(cast["agent"][0], request, work=Work("entry-1"))
    await stage.tell(cast["agent"][1], added.text, by=added.agent)
    return Outcome("nothing to add", done=True)


@broken
async def publish_subscribe(stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
    """Says it twice, and forgets a late subscriber's replay."""
    early, late = cast["subscriber"]
    await stage.subscribe(early, "news")
    await stage.publish("news", "one", by=cast["publisher"][0])
    await stage.subscribe(late, "news")
    await stage.unsubscribe(early, "news")
    await stage.subscribe(early, "news", replay=1)
    return Outcome("nothing to publish", done=True)


@broken
async def broker_facilitator(stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
    """Asks the same provider until its lease is over."""
    provider = cast["provider"][0]
    await stage.ask_for(Registration, provider, request)
    await stage.post("register", f"drying until {options.lease_ms}", by=provider)
    for number in range(3):
        await stage.ask_for(Query, cast["requester"][0], request)
        await stage.ask(provider, request, work=Work(f"a-{number}"))
    await stage.ask(provider, request, work=Work("a"))
    return Outcome("answered", done=True)


@broken
async def router_targeted(stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
    """Delivers to everybody, and asks nobody whether it came."""
    await stage.post("messages", f"to {cast['agent'][0]}: {request}")
    await stage.route(cast["agent"], request)
    await stage.post("messages", "to nobody: the end")
    return Outcome("delivered", done=True)


@broken
async def hierarchical_tree_of_agents(
    stage: Stage, cast: Cast, request: str, options: Any
) -> Outcome:
    """Gives every sub-tree the same workers."""
    for worker in cast["worker"] if not cast.get("manager") else ():
        await stage.ask(worker, request, work=Work(f"part-{worker}", optional=True))
    for manager in cast.get("manager", ()):
        team = {"root": (manager,), "worker": cast["worker"]}
        await stage.play(Play("hierarchical_tree_of_agents", team, request, name=manager))
    return Outcome("gathered", done=True)


@broken
async def redteam_defender_judge(stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
    """Shows the defender what the judge goes by, and attacks without end."""
    for _ in range(3):
        attack = await stage.ask(cast["red_team"][0], request)
        await stage.ask(cast["defender"][0], f"{attack.text}\nRubric: {options.rubric}")
    return Outcome("quality_gate: score >= 0.7", done=True)


@broken
async def factcheck_tool_verifier(stage: Stage, cast: Cast, request: str, options: Any) -> Outcome:
    """Accepts what nobody checked."""
    claims = (await stage.ask_for(Claims, cast["producer"][0], request)).value
    assert claims
    await stage.post("evidence", "as everybody knows")
    return Outcome(
        "quality_gate", done=True, result="\n".join(f"{claim} [1]" for claim in claims.claims)
    )


@broken
async def plan_execute_observe_reflect(
    stage: Stage, cast: Cast, request: str, options: Any
) -> Outcome:
    """Takes step after step, and forgets what was learnt."""
    await stage.ask(cast["planner"][0], request)
    for number in range(4):
        await stage.ask(cast["executor"][0], request, work=Work(f"step-{number}"))
        await stage.ask_for(Observation, cast["observer"][0], request)
    await stage.ask(cast["reflector"][0], request)
    return Outcome("done", done=True)


@broken
async def memory_sync_daily_summary(
    stage: Stage, cast: Cast, request: str, options: Any
) -> Outcome:
    """Keeps whatever the curator says."""
    await stage.ask_all_for(Log, [Ask(each, request) for each in cast["agent"]])
    summary = (await stage.ask_for(Summary, cast["memory_curator"][0], request)).value
    for insight in summary.insights if summary else ():
        await stage.post("shared", f"{insight.text} ({', '.join(insight.sources)})")
        await stage.note(insight.text, insight.sources)
    return Outcome("summarised", done=True)


@broken
async def protocol_bridge_mcp_acp_a2a_anp(
    stage: Stage, cast: Cast, request: str, options: Any
) -> Outcome:
    """Answers in another conversation, and calls a failure a success."""
    first, _, other = cast["local"][:3]
    asked = Envelope(
        id="m1",
        kind=Kind.TASK_ASSIGN,
        time=format_ms(0),
        sender=AgentRef(first),
        recipient=AgentRef(other),
        correlation_id="c1",
        body=TaskAssign(task_id="t", input=freeze(request)),
    )
    await stage.post("wire", encode(asked, DialectName.MAC).decode())
    answer = await stage.ask(other, request)
    reply = Envelope(
        id="m2",
        kind=Kind.TASK_COMPLETE,
        time=format_ms(0),
        sender=AgentRef(other),
        recipient=AgentRef(first),
        correlation_id="c2",
        body=TaskResult(task_id="t", output=freeze(answer.text)),
    )
    await stage.post("wire", encode(reply, DialectName.MAC).decode())
    return Outcome("answered", done=True, result=answer.text)
