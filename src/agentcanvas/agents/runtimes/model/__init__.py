"""A model as an agent: what speaks OpenAI's chat or responses, or Anthropic's messages.

``runtime`` asks the model, does what it asks for with the tools of ``toolbox``, and asks again
until it has said its last word. ``endpoints`` hold what is particular to each protocol, over the
vendors' own clients. The model is called from here, so its key never comes near the sandbox.
"""

from agentcanvas.agents.runtimes.model.options import Api, ModelOptions, read_options
from agentcanvas.agents.runtimes.model.runtime import ModelRuntime

__all__ = ["Api", "ModelOptions", "ModelRuntime", "read_options"]
