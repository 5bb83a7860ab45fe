"""What a task asks of an agent: the order in it, its packet, and the turn that comes of both."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Struct

from agentcanvas.agents.answers import AnswerForm, JsonForm
from agentcanvas.agents.place import Place
from agentcanvas.agents.prompt import render
from agentcanvas.agents.runtime import Turn
from agentcanvas.agents.way_out import WayOut
from agentcanvas.protocol.envelope import Envelope
from agentcanvas.protocol.forms import StandardResponse
from agentcanvas.protocol.kinds import TaskAssign
from agentcanvas.protocol.packet import Packet, packet_of
from agentcanvas.protocol.turns import Access, Order
from agentcanvas.protocol.values import freeze


class Member(Struct, frozen=True, kw_only=True):
    """What a host has to know of its agent; time limits in seconds."""

    id: str
    env: tuple[str, ...] = ()
    way_out: WayOut = WayOut()
    timeout_s: float | None = 1800.0
    silent_s: float | None = 300.0
    capabilities: tuple[str, ...] = ()


def turn_of(member: Member, order: Order, packet: Packet, place: Place | None) -> Turn:
    """The turn that an order asks for."""
    form = _form(order)
    folder = place.view.tree if place else None
    prompt = render(packet, folder, form=form, images=bool(order.images))
    return Turn(
        turn_id=order.turn_id,
        run_id=order.run_id,
        agent_id=member.id,
        prompt=prompt,
        role=order.role,
        number=order.number,
        task_id=packet.task_id,
        revision=order.revision,
        attempt=order.attempt,
        form=form,
        place=place.view if place else None,
        sessions=place.sessions if place else None,
        env=member.env,
        timeout_s=_patient(member.timeout_s, order),
        silent_s=_patient(member.silent_s, order),
        session_id=order.session_id or None,
    )


def order_of_a_stranger(envelope: Envelope, assign: TaskAssign) -> Order:
    """A task from somebody who gives no orders: a plain question without files."""
    return Order(
        message=packet_of(assign).task,
        turn_id=envelope.id,
        run_id=envelope.session or "default",
    )


def _patient(limit_s: float | None, order: Order) -> float | None:
    return None if limit_s is None else limit_s * order.patience


def packet_in(assign: TaskAssign, order: Order) -> Packet:
    """What the agent is told, with what the order adds to it."""
    plain = msgspec.structs.replace(assign, input=freeze(order.message), task_id=order.task_id)
    return packet_of(plain, rules=order.rules, skills=order.skills)


def _form(order: Order) -> AnswerForm | None:
    if order.answer_schema is not UNSET:
        return JsonForm(msgspec.json.decode(order.answer_schema, type=dict[str, Any]))
    reports = order.access is Access.WORK and not order.own_words
    return StandardResponse if reports else None
