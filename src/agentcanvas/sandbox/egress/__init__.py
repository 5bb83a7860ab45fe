"""The one way out of a closed network (D11): a proxy on the host that knows hosts, ports and keys.

``rules`` says what may be reached, ``addresses`` what a name may mean, ``proxy`` opens the door, an
``exchange`` serves one connection. Who opens it, and for whom, is left to whoever starts a turn.
"""
