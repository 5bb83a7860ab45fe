"""A run in the terminal: a pure model of what is to be seen, three ways to draw it, and answers.

Drawing and asking only; what happens in a run is told by an ``Office``.
"""
