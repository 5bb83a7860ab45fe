"""Benchmarks against peers: one file a subject, each offering ``contests(quick)``.

``python -m bench`` runs them. How to state one is told in ``bench.harness``; how the figures are
shown and kept is ``bench.report``. Nothing here is shipped in the wheel.
"""
