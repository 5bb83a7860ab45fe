"""Showing the proposals of a workspace's runs: details, patches, and files before and after."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import anyio.to_thread
import msgspec
from msgspec import UNSET

from agentcanvas.errors import NotFound, ValidationError
from agentcanvas.proposals.choosing import chosen_in, rest_of
from agentcanvas.proposals.model import DerivedFrom, ProposalState
from agentcanvas.proposals.patch import inspect
from agentcanvas.proposals.policy import Policy
from agentcanvas.proposals.radar import Fitness, Outlook
from agentcanvas.proposals.tree import Tree
from agentcanvas.protocol.person import PersonAsk
from agentcanvas.runs import events as e
from agentcanvas.runs import shelf
from agentcanvas.runs.lookout import Lookout
from agentcanvas.runs.shelf import Kept
from agentcanvas.runs.shown import Rounds, ShownProposal, Side, shown_proposal
from agentcanvas.runs.state import fold
from agentcanvas.sandbox.generation import Generation, frozen_tree, load_generation

REVIEW = "review:"
_ANYWHERE = Policy(left_out=())
_STANDS_AS = {Fitness.STALE: ProposalState.STALE, Fitness.CONFLICTS: ProposalState.CONFLICTS}


class Showing:
    """Over all runs of a workspace; ``recorded`` gives a run's events, ``asks`` what waits."""

    def __init__(
        self,
        lookout: Lookout,
        recorded: Callable[[str], Awaitable[list[e.Recorded]]],
        asks: Callable[[str], Awaitable[tuple[PersonAsk, ...]]],
    ) -> None:
        self._lookout = lookout
        self._workspace = lookout.workspace
        self._recorded = recorded
        self._asks = asks

    async def proposal(
        self, run_id: str, task_id: str, attempt: int | None = None
    ) -> ShownProposal:
        """All about one attempt at a task, the latest if none is named."""
        entries = await self._recorded(run_id)
        rounds = Rounds(entries, task_id)
        number = _number(rounds, run_id, task_id, attempt)
        kept = await shelf.take(self._workspace, run_id, rounds.attempts[number - 1].proposal_id)
        task = fold(entries).tasks[task_id]
        ask = await self._ask(run_id, task_id)
        base = frozen_tree(self._workspace, run_id, kept.generation)
        ask_id = ask.ask_id if ask else None
        view = shown_proposal(kept, task, rounds, number, base, ask_id=ask_id)
        if ask is None or view.ask_id is None:
            return view
        return await self._as_it_stands(view, kept, ask)

    async def patch(self, run_id: str, task_id: str, attempt: int | None = None) -> bytes:
        """The change of one attempt at a task, the latest if none is named."""
        return (await self._kept(run_id, task_id, attempt)).folder.patch

    async def file(
        self, run_id: str, task_id: str, path: str, side: Side, attempt: int | None = None
    ) -> bytes:
        """One file of a change, as it was or as it would be."""
        kept = await self._kept(run_id, task_id, attempt)
        base = await load_generation(self._workspace, run_id, kept.generation)
        found = await anyio.to_thread.run_sync(partial(_content, kept, base, path, side))
        if found is None:
            when = "before" if side is Side.BEFORE else "after"
            raise NotFound(f"There is no {path} {when} the change of {task_id}.")
        return found

    async def refuse_impossible(self, ask: PersonAsk, answer: object) -> None:
        """Refuse a choice of files and hunks that the proposal does not have."""
        try:
            chosen = chosen_in(answer)
        except msgspec.ValidationError as wrong:
            raise ValidationError(
                f"The choice cannot be read: {wrong}. Write a list of "
                '{"path": "…", "hunks": [1, 2]}.'
            ) from None
        if chosen and ask.scope.startswith(REVIEW):
            patch = await self.patch(ask.run_id, ask.scope.removeprefix(REVIEW))
            await anyio.to_thread.run_sync(rest_of, patch, chosen)

    async def _as_it_stands(self, view: ShownProposal, kept: Kept, ask: PersonAsk) -> ShownProposal:
        """With how it stands now; where the question is about a part, with that part's evidence."""
        asked = kept
        if ask.proposal is not UNSET and ask.proposal != kept.proposal_id:
            asked = await shelf.take(self._workspace, ask.run_id, ask.proposal)
        await self._lookout.look_again()
        outlook, overlaps = await self._lookout.standing(asked.ref)
        origin = asked.folder.proposal.derived_from
        evidence = asked.evident.evidence if asked.evident else None
        return msgspec.structs.replace(
            view,
            status=_standing(outlook),
            outlook=outlook,
            overlaps=overlaps,
            evidence=evidence,
            evidence_status=evidence.status.value if evidence else "",
            evidence_sentence=evidence.sentence if evidence else "",
            breaches=asked.evident.breaches if asked.evident else (),
            derived_from=origin if isinstance(origin, DerivedFrom) else None,
        )

    async def _ask(self, run_id: str, task_id: str) -> PersonAsk | None:
        asks = await self._asks(run_id)
        return next((ask for ask in asks if ask.scope == f"{REVIEW}{task_id}"), None)

    async def _kept(self, run_id: str, task_id: str, attempt: int | None) -> Kept:
        rounds = Rounds(await self._recorded(run_id), task_id)
        number = _number(rounds, run_id, task_id, attempt)
        return await shelf.take(self._workspace, run_id, rounds.attempts[number - 1].proposal_id)


def _number(rounds: Rounds, run_id: str, task_id: str, attempt: int | None) -> int:
    count = len(rounds.attempts)
    if not count:
        raise NotFound(f"The task {task_id} of {run_id} has no proposal.")
    number = count if attempt is None else attempt
    if not 0 < number <= count:
        raise NotFound(f"{task_id} of {run_id} has no attempt {attempt}; it has 1 to {count}.")
    return number


def _standing(outlook: Outlook | None) -> ProposalState:
    if outlook is None:
        return ProposalState.WAITING
    return _STANDS_AS.get(outlook.fitness, ProposalState.WAITING)


def _content(kept: Kept, base: Generation, path: str, side: Side) -> bytes | None:
    """Read from the change itself, so that no path leads anywhere else."""
    with Tree(base.tree) as tree:
        changes = inspect(kept.folder.patch, tree, _ANYWHERE).insist()
    for change in changes:
        if change.path == path.encode("utf-8", "surrogateescape"):
            entry = change.before if side is Side.BEFORE else change.after
            return None if entry is None else entry.data
    raise NotFound(f"The proposal does not change {path}.")
