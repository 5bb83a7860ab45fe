"""What coding CLIs have in common: how one is described, found, asked, heard and judged.

An ``Adapter`` says everything that is particular about one CLI as data and two functions; each is
a file in ``agents.runtimes.cli``. Which one a member gets is chosen by ``app``; the confined
process below is ``agents.confined``, and keys reach it through ``sandbox.egress``.
"""
