#!/bin/sh
# Sees to it that the browser tests find a browser: one that is here, else Debian's, if we may
# install it, else one that npm has, in .browser/. Without any they skip and say so; this never fails.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }

[ -z "${AGENTCANVAS_BROWSER:-}" ] || exit 0
for name in chromium chromium-browser google-chrome google-chrome-stable chrome; do
    ! command -v $name >/dev/null || exit 0
done
[ ! -x "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" ] || exit 0

install_chromium() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        chromium fonts-dejavu-core >/dev/null 2>&1
}

fetch_chromium() {
    [ -x .browser/chromium ] || say "fetching a Chromium for the browser tests into .browser/ ..."
    .venv/bin/python -m tools.chromium
}

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "no browser here: installing Debian's chromium for the browser tests ..."
    install_chromium && exit 0
    apt-get update >/dev/null 2>&1 && install_chromium && exit 0
    say "Debian's chromium could not be installed"
fi
fetch_chromium ||
    say "no Chromium or Chrome here: the browser tests will be skipped." \
        "Install one, or name it: AGENTCANVAS_BROWSER=/path/to/chrome"
