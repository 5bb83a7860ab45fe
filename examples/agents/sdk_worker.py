"""A worker with the SDK: it counts words.

AGENTCANVAS_HUB=ws://127.0.0.1:7718 AGENTCANVAS_TOKEN=… python sdk_worker.py
"""

import os

from agentcanvas import Agent, Task

worker = Agent("sdk-worker", capabilities=["text"])


@worker.task("count_words")
async def count_words(task: Task) -> object:
    if not isinstance(task.input, str):
        task.reject("INVALID_REQUEST", suggested_agents=["ws-worker"])
    await task.progress(50, "counting")
    return {"words": len(task.input.split())}


if __name__ == "__main__":
    worker.run(os.environ["AGENTCANVAS_HUB"])
