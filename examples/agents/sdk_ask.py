"""Ask a worker from a script, and print what it answers.

AGENTCANVAS_HUB=ws://127.0.0.1:7718 AGENTCANVAS_TOKEN=… python sdk_ask.py sdk-worker "two words"
"""

import os
import sys

from agentcanvas import connect_blocking

worker, text = sys.argv[1:]
with connect_blocking(os.environ["AGENTCANVAS_HUB"], "asker") as client:
    answer = client.request(worker, "count_words", text, timeout_s=30)
    print(answer.output)
