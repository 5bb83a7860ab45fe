#!/bin/sh
# Writes requirements.lock anew: every version and hash, for every system and Python from 3.11 on.
# Extra words go to uv, for example --upgrade. uv is borrowed for the moment when it is not here.
set -eu

cd "$(dirname "$0")/.."

if ! command -v uv >/dev/null; then
    borrowed=$(mktemp -d)
    trap 'rm -rf "$borrowed"' EXIT
    echo "uv is not on the PATH: borrowing one for this run ..." >&2
    .venv/bin/python -m venv "$borrowed"
    "$borrowed/bin/python" -m pip install --quiet --disable-pip-version-check uv
    PATH=$borrowed/bin:$PATH
fi

uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --no-header --quiet -o requirements.lock "$@"
