"""What must hold for each pattern, as a function of the log: the sentences it breaks, or none.

Each is the rule that the pattern's source prescribes; ``broken`` has for each a variant that breaks
it, so that one sees that the function can.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from agentcanvas.pattern import Fate
from agentcanvas.patterns.scripted import Said
from agentcanvas.protocol.dialects import decode
from tests.patterns.team import Log

Property = Callable[[Log], Iterator[str]]


def manager_worker(log: Log) -> Iterator[str]:
    """Every report reaches the manager; a failed gate starts round 2, never round 3."""
    (manager,) = log.players("manager")
    for index, task in enumerate(log.said):
        if task.verb == "task" and task.reply:
            later = [each.text for each in log.said[index:] if each.to == manager]
            if not any(task.reply in text for text in later):
                yield f"{manager} never hears {task.reply!r} of {task.to}"
    if any(each.round > 2 for each in log.said):
        yield "there was a third round"


def role_play_pair(log: Log) -> Iterator[str]:
    """A role flip ends it with a reason of its own."""
    (assistant,) = log.players("assistant")
    for index, each in enumerate(log.said):
        flipped = "Instruction:" if each.to == assistant else "Solution:"
        if each.reply.startswith(flipped):
            if index + 1 < len(log.said):
                yield f"it went on after {each.to} took the other's role"
            if not log.outcome.reason.startswith("role_flip"):
                yield f"the role flip of {each.to} is not the reason: {log.outcome.reason}"


def chat_chain_pipeline(log: Log) -> Iterator[str]:
    """A stage sees the conclusion of the one before only; two unchanged modifications end it."""
    earlier: set[str] = set()
    here: list[Said] = []
    conclusion = ""
    for each in log.said:
        if each.verb == "post":
            conclusion = each.text
            earlier |= {said.reply for said in here if said.reply not in conclusion}
            here = []
        elif each.verb in {"ask", "task"}:
            here.append(each)
            yield from (f"{each.to} sees {text!r}" for text in earlier if text in each.text)
            drafts = [said.reply for said in here if said.verb == "task"]
            if len(drafts) > 3 and len(set(drafts[-4:])) == 1:
                yield f"{each.to} was asked a third time to change nothing"


def sop_assembly_line(log: Log) -> Iterator[str]:
    """No role acts before all that it watches is there; a fourth retry is impossible."""
    watches: dict[str, set[str]] = {
        "product_manager": set(),
        "architect": {"requirements"},
        "engineer": {"requirements", "design"},
        "qa": {"requirements", "code"},
    }
    plays = {agents[0]: role for role, agents in log.cast.items()}
    pool: set[str] = set()
    for each in log.said:
        if each.verb == "post":
            pool.add(each.to)
        elif each.to in plays and not watches[plays[each.to]] <= pool:
            yield f"{each.to} acts without {watches[plays[each.to]] - pool}"
    if len(log.verbs("task")) > 4:
        yield "the code was written a fifth time"


def debate_judge(log: Log) -> Iterator[str]:
    """Round r reads the others' round r-1 only; the judge sees arguments, not who made them."""
    debaters = log.players("debater")
    if log.options.variant == "consensus":
        yield from _reads_the_round_before(log)
        return
    arguments = [each.reply for each in log.asked(*debaters)]
    for verdict in log.asked(*log.players("judge")):
        said_by_us = verdict.text
        for argument in arguments:
            if argument not in verdict.text:
                yield f"the judge does not see {argument!r}"
            said_by_us = said_by_us.replace(argument, "")
        yield from (f"the judge sees that {who} spoke" for who in debaters if who in said_by_us)


def _reads_the_round_before(log: Log) -> Iterator[str]:
    debaters = log.players("debater")
    for each in log.asked(*debaters):
        for other in log.asked(*debaters):
            argument = _field(other.reply, "argument")
            if other.to == each.to or not argument:
                continue
            sees, should = argument in each.text, other.round == each.round - 1
            if sees != should:
                yield f"in round {each.round} {each.to} sees {argument!r}: {sees}"


def critic_refiner_curator(log: Log) -> Iterator[str]:
    """Steps before the wrong one stay as they are; the curator learns only what is right."""
    judge, critic = log.players("judge"), log.players("critic")
    before: list[str] = []
    kept = 0
    accepted = False
    for each in log.asked():
        if each.to in {*judge, *critic}:
            steps = re.findall(r"^\d+\. .*$", each.text, re.MULTILINE)
            if steps[:kept] != before[:kept]:
                yield f"steps before the wrong one changed: {before[:kept]} to {steps[:kept]}"
            before, kept = steps, 0
        if each.to in judge:
            accepted = bool(_field(each.reply, "accept"))
        if each.to in critic:
            kept = max(0, int(_field(each.reply, "step") or 0) - 1)
            accepted = accepted or (not judge and _field(each.reply, "step") == 0)
        if each.to in log.players("curator") and not accepted:
            yield "the curator learns from what nobody accepted"


def majority_vote_with_tiebreak(log: Log) -> Iterator[str]:
    """Ballots are blind to each other; how a tie was broken is on record."""
    voters = log.players("evaluator")
    for each in log.asked(*voters):
        for other in log.asked(*voters):
            reason = _field(other.reply, "reason")
            if reason and reason in each.text:
                yield f"{each.to} sees the ballot of {other.to}"
    if log.outcome.reason.startswith("tie_break") and log.outcome.reason not in {
        each.text for each in log.posted("tally")
    }:
        yield "nothing on record says how the tie was broken"


def self_consistency_ensemble(log: Log) -> Iterator[str]:
    """The majority is of the parsed answers; abstentions do not count."""
    answers = [_field(each.reply, "answer") for each in log.asked(*log.players("sampler"))]
    parsed = [answer.casefold().rstrip(".") for answer in answers if isinstance(answer, str)]
    if not parsed:
        if log.outcome.done:
            yield "there is an answer though nobody gave one"
        return
    counts = {answer: parsed.count(answer) for answer in parsed}
    chosen = log.outcome.result.partition("\n")[0].casefold().rstrip(".")
    if counts.get(chosen, 0) < max(counts.values()):
        yield f"{chosen!r} is not the majority of {counts}"
    if f"of {len(parsed)}" not in log.outcome.reason:
        yield f"the count is not of {len(parsed)}: {log.outcome.reason}"


def contract_net_auction(log: Log) -> Iterator[str]:
    """A late bid is rejected as late; the award goes to the best, and on only after a failure."""
    bids = {each.to: each for each in log.verbs("ask") if each.to in log.players("bidder")}
    for bidder, bid in bids.items():
        if bid.reply == "late" and not any(
            told.to == bidder and told.text.endswith("late") for told in log.verbs("tell")
        ):
            yield f"{bidder} is not told that the bid was late"
    awards = log.verbs("task")
    costs = {who: _field(bid.reply, "cost") or 0 for who, bid in bids.items()}
    proposed = {who for who, bid in bids.items() if _field(bid.reply, "propose")}
    for award, after in zip(awards, [*awards[1:], None], strict=True):
        if award.to not in proposed:
            yield f"{award.to} is awarded without a bid in time"
        if after is not None and award.fate is Fate.DONE:
            yield f"{after.to} is awarded though {award.to} has done it"
    order = [award.to for award in awards]
    if not log.players("manager") and [costs[who] for who in order] != sorted(
        costs[who] for who in order
    ):
        yield f"awarded in the order {order}, not by cost"


def bilateral_negotiation_offer_counteroffer(log: Log) -> Iterator[str]:
    """Nobody goes back behind an own offer; the deadline gives the conflict deal."""
    sign = 1 if log.options.proposer_wants == "more" else -1
    wants = {log.players("proposer")[0]: sign, log.players("responder")[0]: -sign}
    last: dict[str, float] = {}
    for each in log.posted("offers"):
        value = float(each.text)
        if each.by in last and wants[each.by] * value > wants[each.by] * last[each.by]:
            yield f"{each.by} goes back from {last[each.by]:g} to {value:g}"
        last[each.by] = value
    if not log.outcome.done and log.outcome.result != log.options.conflict_deal:
        yield f"without a deal it is {log.outcome.result!r}"


def blackboard_shared_state(log: Log) -> Iterator[str]:
    """No addressed messages; what is over the retention is gone, what was added is there."""
    yield from (f"{each.to} was addressed" for each in log.verbs("tell", "route"))
    posted = [(each.by, each.text) for each in log.posted("board")]
    for each in log.verbs("task"):
        if each.fate is Fate.DONE and (each.to, each.reply) not in posted:
            yield f"what {each.to} added is lost"


def publish_subscribe(log: Log) -> Iterator[str]:
    """Whoever subscribed hears everything from then on, in the order of each publisher."""
    listening: dict[str, dict[str, int]] = {}
    published: dict[str, list[str]] = {}
    due: list[tuple[str, str]] = []
    for each in log.said:
        match each.verb:
            case "subscribe":
                listening.setdefault(each.text, {})[each.to] = 1
                replayed = published.get(each.text, [])
                due += [(each.to, text) for text in replayed[len(replayed) - log.options.replay :]]
            case "unsubscribe":
                listening.get(each.text, {}).pop(each.to, None)
            case "publish":
                published.setdefault(each.to, []).append(each.text)
                due += [(who, each.text) for who in listening.get(each.to, {}) if who != each.by]
            case "notify":
                if (each.to, each.text) not in due:
                    yield f"{each.to} hears {each.text!r} without having subscribed, or twice"
                else:
                    index = due.index((each.to, each.text))
                    if any(who == each.to for who, _ in due[:index]):
                        yield f"{each.to} hears {each.text!r} too early"
                    del due[index]
    yield from (f"{who} never hears {text!r}" for who, text in due)


def broker_facilitator(log: Log) -> Iterator[str]:
    """An expired lease is not routed to; a search never loops."""
    until: dict[str, int] = {}
    asked: set[str] = set()
    for each in log.said:
        if each.verb == "post" and each.to == "register":
            until[each.by] = int(each.text.rpartition(" ")[2])
        elif each.verb == "ask" and "capability" in each.reply:
            asked = set()
        elif each.verb == "task":
            if each.at_ms >= until.get(each.to, 0):
                yield f"{each.to} is asked after its lease"
            if each.to in asked:
                yield f"the search asks {each.to} again"
            asked.add(each.to)


def router_targeted(log: Log) -> Iterator[str]:
    """Only those behind the tags receive a message, and every delivery is acknowledged."""
    targets: set[str] = set()
    waiting: list[str] = []
    for each in log.said:
        if each.verb == "post":
            yield from (f"{who} never acknowledged" for who in waiting)
            targets = set(each.text.partition(":")[0].removeprefix("to ").split(", "))
            waiting = []
        elif each.to in log.players("agent"):
            if each.to not in targets:
                yield f"{each.to} receives what is for {sorted(targets)}"
            if each.verb == "route" and each.fate is Fate.DONE:
                waiting.append(each.to)
            elif each.to in waiting:
                waiting.remove(each.to)


def hierarchical_tree_of_agents(log: Log) -> Iterator[str]:
    """The depth cap holds; siblings cannot message each other."""
    teams: dict[str, set[str]] = {}
    for each in log.said:
        depth = 1 + (each.within.count("/") + 1 if each.within else 0)
        if depth > log.options.max_depth:
            yield f"{each.within} is deeper than {log.options.max_depth}"
        if each.within and each.to:
            teams.setdefault(each.within.partition("/")[0], set()).update({each.to})
    names = sorted(teams)
    for index, one in enumerate(names):
        for other in names[index + 1 :]:
            yield from (f"{one} and {other} share {who}" for who in teams[one] & teams[other])


def redteam_defender_judge(log: Log) -> Iterator[str]:
    """The defender never sees the rubric; attacks are bounded."""
    for each in log.asked(*log.players("defender")):
        if log.options.rubric in each.text:
            yield "the defender sees the rubric"
    most = log.options.max_rounds * len(log.players("red_team"))
    if len(log.asked(*log.players("red_team"))) > most:
        yield f"there were more than {most} attacks"


def factcheck_tool_verifier(log: Log) -> Iterator[str]:
    """Each accepted claim carries the id of its tool evidence."""
    evidence = {
        number: each.text
        for number, each in enumerate(log.verbs("post"), 1)
        if each.to == "evidence"
    }
    for line in log.outcome.result.splitlines() if log.outcome.done else ():
        found = re.fullmatch(r"(.*) \[(\d+)\]", line)
        if found is None or found[1] not in evidence.get(int(found[2]), ""):
            yield f"no evidence is cited for {line!r}"


def plan_execute_observe_reflect(log: Log) -> Iterator[str]:
    """Three stalls cause a new plan, not another step; rules learnt are written to memory."""
    (executor,), (planner,) = log.players("executor"), log.players("planner")
    noted = {each.text for each in log.verbs("note")}
    progress: list[bool] = []
    for each in log.asked():
        if each.to == planner:
            progress = []
        if each.to == executor:
            if progress[-3:] == [False] * 3:
                yield f"another step after {len(progress)} stalls"
            progress.append(False)
        if each.to in log.players("observer"):
            progress[-1] = bool(_field(each.reply, "progress"))
        if each.to in log.players("reflector"):
            rules = set(_field(each.reply, "rules") or ())
            yield from (f"{rule!r} is not in memory" for rule in rules - noted)


def memory_sync_daily_summary(log: Log) -> Iterator[str]:
    """Every insight cites its source entries, and they exist."""
    entries = {
        f"{each.to}:{number}"
        for each in log.asked(*log.players("agent"))
        for number, _ in enumerate(_field(each.reply, "entries") or (), 1)
    }
    for each in log.posted("shared"):
        cited = re.search(r"\(([^()]*)\)$", each.text)
        sources = set(cited[1].split(", ")) if cited else set()
        if not sources or not sources <= entries:
            yield f"{each.text!r} cites nothing that is there"
    yield from (
        f"{each.text!r} is noted without sources" for each in log.verbs("note") if not each.reply
    )


def protocol_bridge_mcp_acp_a2a_anp(log: Log) -> Iterator[str]:
    """There and back keeps id, correlation and class of the failure."""
    wires = [decode(each.text.encode()).envelope for each in log.posted("wire")]
    answers = [each for each in log.asked() if each.to in log.players("local")[1:]]
    if len(wires) != 2 * len(answers):
        yield f"{len(answers)} answers and {len(wires)} messages"
    for asked, back, answer in zip(wires[::2], wires[1::2], answers, strict=False):
        if back.reply_to != asked.id:
            yield f"the answer to {asked.id} is to {back.reply_to}"
        if asked.correlation_id != back.correlation_id:
            yield "the answer is in another conversation"
        failed = answer.fate is not Fate.DONE
        if failed and not getattr(back.body, "error_code", ""):
            yield "the class of the failure is lost"


def _field(reply: str, name: str) -> Any:
    """A field of an answer with a form; None where it has none."""
    try:
        value = json.loads(reply)
    except ValueError:
        return None
    return value.get(name) if isinstance(value, dict) else None


PROPERTIES: dict[str, Property] = {
    each.__name__: each
    for each in (
        manager_worker,
        role_play_pair,
        chat_chain_pipeline,
        sop_assembly_line,
        debate_judge,
        critic_refiner_curator,
        majority_vote_with_tiebreak,
        self_consistency_ensemble,
        contract_net_auction,
        bilateral_negotiation_offer_counteroffer,
        blackboard_shared_state,
        publish_subscribe,
        broker_facilitator,
        router_targeted,
        hierarchical_tree_of_agents,
        redteam_defender_judge,
        factcheck_tool_verifier,
        plan_execute_observe_reflect,
        memory_sync_daily_summary,
        protocol_bridge_mcp_acp_a2a_anp,
    )
}


def breaches(log: Log, pattern: str) -> list[str]:
    """What the log breaks of its pattern's rule."""
    return list(PROPERTIES[pattern](log))
