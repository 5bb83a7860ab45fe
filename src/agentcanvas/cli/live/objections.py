"""What speaks against applying a change as it stands, said before anybody tries (C4, D7)."""

from __future__ import annotations

from agentcanvas.cli.live.clean import one_line
from agentcanvas.proposals.radar import Fitness
from agentcanvas.runs.shown import ShownProposal


def red_checks(view: ShownProposal) -> str:
    """The checks that a person can overrule only with a reason; empty if there are none."""
    worse = view.evidence.worse if view.evidence else ()
    return ", ".join(one_line(compared.check.name, 80) for compared in worse)


def red_sentence(view: ShownProposal) -> str:
    """The same with their colours before and after; empty if there are none."""
    worse = view.evidence.worse if view.evidence else ()
    if not worse:
        return ""
    colours = "; ".join(
        one_line(compared.sentence.removeprefix(f"{compared.check.name}: "), 120)
        for compared in worse
    )
    verb = "is" if len(worse) == 1 else "are"
    return f"{red_checks(view)} {verb} red with this change ({colours})"


def conflict_sentence(view: ShownProposal) -> str:
    """What in the workspace of now keeps it from landing; empty if nothing does."""
    if view.outlook is None or view.outlook.fitness is not Fitness.CONFLICTS:
        return ""
    return one_line(view.outlook.reason, 400) or "your files have changed since"
