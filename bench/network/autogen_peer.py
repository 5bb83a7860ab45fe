# mypy: ignore-errors
"""AutoGen's gRPC runtime, run by the Python of an environment of its own: no part of ours.

A host, 8 runtimes with an agent that gives back what it gets, 8 that ask, 512 questions on their
way. Nothing is kept on disk. A line on the standard input is one round; so is one on the output.
"""

import asyncio
import sys
from dataclasses import dataclass

from autogen_core import (
    AgentId,
    MessageContext,
    RoutedAgent,
    message_handler,
    try_get_known_serializers_for_type,
)
from autogen_ext.runtimes.grpc import GrpcWorkerAgentRuntime, GrpcWorkerAgentRuntimeHost

PAIRS, IN_FLIGHT, SIZE = 8, 64, 830


@dataclass
class Asked:
    """A question, or its answer."""

    body: str


class Echo(RoutedAgent):
    """Gives back what it gets."""

    @message_handler
    async def answer(self, message: Asked, ctx: MessageContext) -> Asked:  # noqa: ARG002
        """Answer at once."""
        return message


async def main(address: str, number: int) -> None:
    """Serve rounds until the input ends."""
    host = GrpcWorkerAgentRuntimeHost(address=address)
    host.start()
    askers = []
    for index in range(PAIRS):
        worker = GrpcWorkerAgentRuntime(host_address=address)
        await worker.start()
        await Echo.register(worker, f"echo{index}", lambda: Echo("echo"))
        asker = GrpcWorkerAgentRuntime(host_address=address)
        await asker.start()
        asker.add_message_serializer(try_get_known_serializers_for_type(Asked))
        askers.append(asker)

    async def ask(index: int) -> None:
        for _ in range(number // PAIRS // IN_FLIGHT):
            to = AgentId(f"echo{index}", "default")
            await askers[index].send_message(Asked("x" * SIZE), to)

    print("ready", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        await asyncio.gather(*(ask(index) for index in range(PAIRS) for _ in range(IN_FLIGHT)))
        print("done", flush=True)


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
