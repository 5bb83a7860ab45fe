#!/bin/sh
# Sees to it that the sandbox tests find bubblewrap: one that is here, else Debian's, if we may
# install it. Without it Landlock alone is tested, and that is said; this never fails.
set -eu

say() { printf '%s\n' "$*" >&2; }

[ "$(uname -s)" = Linux ] || exit 0
! command -v bwrap >/dev/null || exit 0

install_bubblewrap() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        bubblewrap >/dev/null 2>&1
}

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "no bubblewrap here: installing Debian's for the sandbox tests ..."
    install_bubblewrap || { apt-get update >/dev/null 2>&1 && install_bubblewrap; } ||
        say "bubblewrap could not be installed: its tests will be skipped"
else
    say "no bubblewrap here: its tests will be skipped." \
        "Install it (Debian, Ubuntu: sudo apt install bubblewrap)"
fi
