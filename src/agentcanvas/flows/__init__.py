"""Flows: what a team does together, written as a YAML file that people and the canvas both edit.

A typed model, reading with every problem at once, writing that touches only what changed, worst
cases, trust. How a pattern behaves is left to ``patterns``, carrying a flow out to ``runs``.
"""
