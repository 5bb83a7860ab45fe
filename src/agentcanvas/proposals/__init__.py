"""A worker's change on its way into the workspace: patch, evidence, verdict, landing, undo.

The only package that writes to the user's workspace (D8), and only all or nothing.
Making the patch belongs to ``sandbox``, asking reviewers to ``runs``, keeping states to ``store``.
"""
