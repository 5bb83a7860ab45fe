"""A model that does what the prompt says, in the wire formats of four APIs.

A double at the one edge that cannot be real here: lines of the prompt are a script (``script``),
each API has its own words for the answer, and ``server`` listens on this machine's loopback.
"""
