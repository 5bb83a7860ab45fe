"""What a flow gives out of hand, a sentence each: for whoever has to say whether it may run.

``flow show`` and ``trust`` tell the same, so that nothing is allowed that nobody could read.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from agentcanvas.flows.ground import Setup
from agentcanvas.flows.guards import PERSON, Escalation, Land
from agentcanvas.flows.model import Flow
from agentcanvas.flows.pattern_info import Patterns
from agentcanvas.flows.reach import network_in_words, reach_of, usual_network
from agentcanvas.flows.settle import Settled, settle
from agentcanvas.flows.team import Agent, Network, NetworkMode, Runtime
from agentcanvas.sandbox.egress.providers import PROVIDERS


class Grant(Struct, frozen=True):
    """One thing; ``is_wide`` where it is more than a flow has when it says nothing."""

    sentence: str
    is_wide: bool = True


def grants(flow: Flow, patterns: Patterns) -> Iterator[Grant]:
    """Everything, in the order of a flow's text."""
    for agent in flow.agents:
        yield from of_agent(agent)
    if at_home := [name for name in _rules_of(flow) if name.startswith("~/")]:
        yield Grant(f"agents are told what stands in: {', '.join(at_home)}")
    if flow.bring:
        yield Grant(f"takes along ignored files: {', '.join(flow.bring)}")
    if flow.setup is not None:
        yield from of_setup(flow.setup)
    yield from _landing(settle(flow, patterns))


def _rules_of(flow: Flow) -> Iterator[str]:
    """The rules that a flow names, without the scope that may stand before a file."""
    for ref in flow.common_rules.rule_chain_refs:
        scope, _, name = ref.partition(":")
        yield name or scope
    for agent in flow.agents:
        yield from agent.rules


def of_agent(agent: Agent) -> Iterator[Grant]:
    """What it reaches and sees."""
    runtime = agent.runtime or Runtime()
    if runtime.kind == "human":
        return
    said = runtime.network or usual_network(runtime)
    yield _reaches(agent.id, said, is_wide=bool(reach_of(runtime).network))
    if runtime.url:
        key = f", with the key in {runtime.key_env}" if runtime.key_env else ""
        yield Grant(f"{agent.id} is answered from {runtime.url}{key}")
    # Behind the proxy the key of a known service stays outside, and a token stands in for it.
    is_kept_out = said.mode in (NetworkMode.MODEL, NetworkMode.HOSTS)
    keys = [name for name in runtime.env if is_kept_out and name in PROVIDERS]
    if seen := [name for name in runtime.env if name not in keys]:
        yield Grant(f"{agent.id} sees: {', '.join(seen)}")
    if keys:
        yield Grant(f"{agent.id} uses, without seeing it: {', '.join(keys)}")


def of_setup(setup: Setup) -> Iterator[Grant]:
    """The command before the work, what it reaches and sees."""
    yield Grant(f"setup runs: {setup.command}", is_wide=False)
    said = setup.network or Network(mode=NetworkMode.NONE)
    yield _reaches("setup", said, is_wide=said.mode is not NetworkMode.NONE)
    if setup.env:
        yield Grant(f"setup sees: {', '.join(setup.env)}")


def _reaches(who: str, network: Network, *, is_wide: bool) -> Grant:
    return Grant(f"{who} reaches: {network_in_words(network)}", is_wide)


def _landing(settled: tuple[Settled, ...]) -> Iterator[Grant]:
    """How changes come to the user's files, with the interaction's name where they differ."""
    played = [each for each in settled if not each.is_part]
    told = {each.id: tuple(_lands(each)) for each in played}
    if len(set(told.values())) == 1:
        yield from told[played[0].id]
        return
    for name, found in told.items():
        for grant in found:
            yield Grant(f"{name} {grant.sentence}", grant.is_wide)


def _lands(each: Settled) -> Iterator[Grant]:
    review = each.review
    if review.auto_approve:
        unverified = ", also unverified" if review.allow_unverified else ""
        yield Grant(f"lands without asking you{unverified}")
    elif review.reviewer != PERSON:
        yield Grant(f"lands without asking you what {review.reviewer} approves")
    else:
        yield Grant("lands what you approve", is_wide=False)
    if review.escalation_on_max is Escalation.FORCE_APPROVE:
        yield Grant("lands after the last round what no review has approved")
    if each.land is Land.COMMIT:
        yield Grant("commits to your branch")
    elif each.land is Land.BRANCH:
        yield Grant("commits to a branch of its own", is_wide=False)
