"""The message language: one envelope, three dialects, and the rules between them.

Pure values: nothing here reads a clock, a file or a socket.
Delivery belongs to ``hub``, keeping to ``store``, choosing settings to ``app``.
"""
