"""The members of a team: what they are told, what answers, and how an answer is read.

A ``Runtime`` turns one ``Turn`` into events and one ``TurnResult``; wrappers add recording, limits
and stopping. ``packet`` and ``prompt`` say what an agent gets to read, ``answers`` what it said.
Which runtime a member has is chosen by ``app``; messages and turns are the engine's matter.
"""
