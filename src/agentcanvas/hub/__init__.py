"""Who is present, who may speak to whom, and how a message gets there and is not lost.

Mail is kept in the store, in the same transaction as whatever caused it (D2); the language of the
messages is ``protocol``'s. Doors to the network are left to ``web``, and what to do about a failed
task to its owner: the hub reports, it never reassigns (D31).
"""
