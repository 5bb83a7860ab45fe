"""A worker without the SDK: Python and the package websockets. It counts words.

AGENTCANVAS_HUB=ws://127.0.0.1:7718 AGENTCANVAS_TOKEN=… python websocket_worker.py
"""

import asyncio
import json
import os
import uuid
from datetime import UTC, datetime

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

NAME = "ws-worker"
ADDRESS = f"{os.environ['AGENTCANVAS_HUB']}/agent/ws?agent_id={NAME}&capabilities=text"
HEADERS = {"Authorization": f"Bearer {os.environ['AGENTCANVAS_TOKEN']}"}


def message(kind: str, to: str, payload: dict, thread: str | None = None) -> str:
    """A message of the dialect MAC."""
    return json.dumps(
        {
            "message_id": str(uuid.uuid4()),
            "type": kind,
            "from": NAME,
            "to": to,
            "timestamp": datetime.now(UTC).isoformat(),
            "payload": payload,
            "metadata": {"correlation_id": thread} if thread else {},
        }
    )


async def work(request: dict, hub: ClientConnection) -> None:
    """Accept a task, do it, say how it ended; only then is it taken over."""
    asker = request["from"]
    thread = request.get("metadata", {}).get("correlation_id", request["message_id"])
    task_id, text = request["payload"]["task_id"], request["payload"]["input"]
    now = datetime.now(UTC).isoformat()
    accepted = {"task_id": task_id, "estimated_duration": 1, "accepted_at": now}
    await hub.send(message("TASK_ACCEPT", asker, accepted, thread))
    done = {
        "task_id": task_id,
        "status": "SUCCESS",
        "output": {"words": len(text.split())},
        "duration": 0.01,
        "completed_at": now,
    }
    await hub.send(message("TASK_COMPLETE", asker, done, thread))
    # Until then it would come again, to us or to the next who connects under this name.
    await hub.send(json.dumps({"ack": [request["delivery"]["number"]]}))


async def beat(hub: ClientConnection) -> None:
    """Say every 30 seconds that we live; after 90 of silence the hub calls us lost."""
    payload = {"status": "IDLE", "load": 0.0, "tasks_running": 0, "tasks_queued": 0}
    while True:
        await hub.send(message("HEARTBEAT", "hub", {**payload, "capabilities": ["text"]}))
        await asyncio.sleep(30)


async def main() -> None:
    """Connect, and again whenever the connection ends."""
    async for hub in connect(ADDRESS, additional_headers=HEADERS):
        beating = asyncio.create_task(beat(hub))
        try:
            async for frame in hub:
                received = json.loads(frame)
                if received.get("type") == "TASK_REQUEST":
                    await work(received, hub)
                elif "delivery" in received:  # nothing that we want; take it over all the same
                    await hub.send(json.dumps({"ack": [received["delivery"]["number"]]}))
        except ConnectionClosed:
            continue
        finally:
            beating.cancel()


if __name__ == "__main__":
    asyncio.run(main())
