"""Client halves of the ways to a hub, each fulfilling ``Transport`` of ``hub.client``.

Server halves live in ``web`` (D39).
"""
