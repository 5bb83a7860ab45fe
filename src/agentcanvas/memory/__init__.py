"""What a team remembers, as Markdown that people read and edit (F2).

Lasting decisions stand in ``MEMORY.md``, which people write; what patterns note goes to a file a
day. Who is shown what of it, and when, is left to the engine.
"""
