"""Run a team of coding agents on a repository, and let nothing land without a verdict."""

from agentcanvas._version import __version__

__all__ = ["__version__"]
