"""The doors of a workspace's server: the HTTP API, the live feed, and the page (D1, D39).

What can be asked is an ``Office``'s matter, what happened the store's; here both are only put on
the wire. Where it listens and for how long is left to ``app``.
"""
