"""Who has which keys, and which of them counts now.

Keys change without a gap: a new one seals at once while the older ones still open until their end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from agentcanvas.errors import UnknownKey, ValidationError
from agentcanvas.protocol.seal.keys import Algorithm, Key


class Keyring:
    """The keys one party knows: its own to seal with, other agents' to open with."""

    def __init__(self, keys: Collection[Key] = ()) -> None:
        self._keys: dict[tuple[str, Algorithm], dict[str, Key]] = {}
        for key in keys:
            self.add(key)

    def add(self, key: Key) -> None:
        """Accept ``key`` for its owner, beside those already there."""
        known = self._keys.setdefault((key.owner, key.algorithm), {})
        if key.id in known:
            raise ValidationError(
                f"{key.owner!r} already has a key {key.id!r} for {key.algorithm}; use a new id"
            )
        known[key.id] = key

    def rotate(self, key: Key, *, accept_old_until_ms: int) -> None:
        """Seal with ``key`` from now on; older keys of its kind still open until the given time."""
        self.add(key)
        known = self._keys[key.owner, key.algorithm]
        for old in known.values():
            ends = old.not_after_ms
            if old is not key and (ends is None or ends > accept_old_until_ms):
                known[old.id] = msgspec.structs.replace(old, not_after_ms=accept_old_until_ms)

    def revoke(self, owner: str, key_id: str | None = None) -> None:
        """Forget one key of ``owner`` at once, or all of them."""
        for algorithm in Algorithm:
            if key_id is None:
                self._keys.pop((owner, algorithm), None)
            else:
                self._keys.get((owner, algorithm), {}).pop(key_id, None)

    def sealing_key(self, owner: str, algorithm: Algorithm, *, now_ms: int) -> Key:
        """The newest key ``owner`` may seal with."""
        newest: Key | None = None
        for key in self._holding(owner, algorithm, now_ms):
            # Of two that start together the one added later wins.
            if key.can_seal and (newest is None or key.not_before_ms >= newest.not_before_ms):
                newest = key
        if newest is None:
            raise UnknownKey(
                f"{owner!r} has no {algorithm} key to seal with at this time; make one first"
            )
        return newest

    def opening_keys(
        self, owners: Collection[str], algorithm: Algorithm, key_id: str | None, *, now_ms: int
    ) -> list[Key]:
        """The keys to open with: the one named, or without a name all of these owners' keys."""
        found = [
            key
            for owner in dict.fromkeys(owners)
            for key in self._holding(owner, algorithm, now_ms)
            if key_id is None or key.id == key_id
        ]
        if not found:
            whose = " or ".join(repr(owner[:80]) for owner in dict.fromkeys(owners))
            which = f"key {key_id[:80]!r}" if key_id is not None else "a key"
            raise UnknownKey(
                f"No {algorithm} {which} of {whose} is known or still accepted; "
                "register the current key, or seal with it"
            )
        return found

    def __repr__(self) -> str:
        return f"Keyring({sum(len(keys) for keys in self._keys.values())} keys)"

    def _holding(self, owner: str, algorithm: Algorithm, now_ms: int) -> Iterator[Key]:
        known = self._keys.get((owner, algorithm), {})
        return (key for key in known.values() if key.holds_at(now_ms))
