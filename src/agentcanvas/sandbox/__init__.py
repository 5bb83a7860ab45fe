"""Where an agent may write: frozen bases, private copies, kernel confinement, and the patch.

``generation`` freezes the workspace, ``prepare`` makes a copy to work in, ``private_git`` puts a
repository into it, ``pick`` and ``process`` run a program that can touch nothing else, ``diff``
says what it changed. Judging and applying a patch is left to ``agentcanvas.proposals``.
"""
