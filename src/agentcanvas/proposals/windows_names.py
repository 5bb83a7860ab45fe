"""Names that Windows cannot hold: whoever checks them out there gets an error, or another file."""

from __future__ import annotations

import re
from typing import Final

# Devices, whatever ending they have; what Windows uses itself; an end that it cuts off.
_IMPOSSIBLE: Final = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3]) *(?:\..*)?"
    r'|.*[<>:"|?*].*|.*[ .]',
    re.IGNORECASE | re.DOTALL,
)


def not_for_windows(path: str) -> str | None:
    """The first name in a path that Windows cannot hold."""
    return next((name for name in path.split("/") if _IMPOSSIBLE.fullmatch(name)), None)
