"""Runs: events are the truth, state is their fold, and every view is made from them (D2, D3).

What a turn does is left to ``agents``, what may land to ``proposals``, how members behave together
to ``patterns``.
"""
