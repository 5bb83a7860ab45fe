#!/bin/sh
# Makes .venv in this tree, with exactly the packages of requirements.lock and AgentCanvas itself.
# `make install` runs it before every target that needs the environment, so a finished one must
# cost nothing: its stamp says for which place, Python and files it was made. The stamp is written
# last; an interrupted installation has none and is begun anew.
set -eu

unset PYTHONHOME PYTHONPATH
cd "$(dirname "$0")/.."
here=$(pwd -P)
stamp=.venv/.stamp
unfinished=.venv/.unfinished

say() { printf '%s\n' "$*" >&2; }

give_up() {
    say "make install: $*"
    exit 1
}

# One line for the environment, one for the package: only the first asks for a new environment.
place_line() { printf 'python %s at %s for %s\n' "$1" "$here" "$(cksum <requirements.lock)"; }
package_line() { printf 'package %s\n' "$(cksum <pyproject.toml)"; }

version_of() {
    "$1" -I -S -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true
}

find_python() {
    too_old='' without_venv=''
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        version=$(version_of "$candidate")
        case $version in
        '') ;;
        2.* | 3.[0-9] | 3.10) too_old="$candidate is Python $version" ;;
        *)
            if "$candidate" -I -c 'import ensurepip, venv' 2>/dev/null; then
                python=$candidate
                return
            fi
            without_venv="$candidate"
            ;;
        esac
    done
    [ -z "$without_venv" ] || give_up "$without_venv comes without the venv module." \
        "Install it (Debian, Ubuntu: sudo apt install python3-venv), then run make install again."
    [ -z "$too_old" ] || give_up "$too_old, but AgentCanvas needs 3.11 or newer." \
        "Install one, or name it: make install PYTHON=/path/to/python3"
    give_up "no python3 found. Install Python 3.11 or newer, then run make install again."
}

create_environment() {
    find_python
    say "creating .venv with Python $(version_of "$python") ..."
    rm -rf .venv
    mkdir .venv
    : >$unfinished
    "$python" -m venv .venv || give_up "$python could not make a virtual environment."
}

# Without stamp and mark it was made by somebody else: use it, do not throw it away. One that was
# copied or moved here cannot be used: its commands start the Python of the other place.
is_usable_foreign() {
    [ ! -e $stamp ] && [ ! -e $unfinished ] || return 1
    case $(version_of .venv/bin/python) in '' | 2.* | 3.[0-9] | 3.10) return 1 ;; esac
    grep -qF "$here/.venv" .venv/bin/activate || return 1
    .venv/bin/python -I -m pip -V >/dev/null 2>&1 || .venv/bin/python -I -m ensurepip >/dev/null 2>&1
}

pip_install() {
    .venv/bin/python -m pip install -qq --disable-pip-version-check --no-input "$@" ||
        give_up "the installation stopped; the lines above say why." \
            "If it was the network, run make install again."
}

# There is no Playwright for musl (Alpine), and no marker that could say so in the lock file. Only
# the browser tests need it, and skip without.
wanted_packages() {
    if ldd --version 2>&1 | grep -q musl; then
        sed '/^playwright==/,/^ *# via/d' requirements.lock >.venv/.wanted
        echo .venv/.wanted
    else
        echo requirements.lock
    fi
}

install_packages() {
    wanted=$(wanted_packages)
    count=$(grep -v win32 "$wanted" | grep -c '^[A-Za-z0-9].*==' || true)
    say "installing $count packages from requirements.lock ..."
    pip_install --require-hashes -r "$wanted"
}

install_agentcanvas() {
    say "installing agentcanvas from this tree ..."
    # pip keeps to itself what a build says, so the page is built apart from it.
    (
        export AGENTCANVAS_SKIP_UI=1
        pip_install --no-build-isolation --no-deps -e .
    )
}

# Everything but the page works without it: a machine that cannot build it is warned, not refused.
build_page() {
    .venv/bin/python -I hatch_build.py --once ||
        say "WARNING: AgentCanvas is installed without its page, for the reason above." \
            "When it is mended, run make ui."
}

place=$(place_line "$(version_of .venv/bin/python)")
package=$(package_line)
{ read -r made_place && read -r made_package; } 2>/dev/null <$stamp || made_place='' made_package=''

if [ "$made_place" != "$place" ]; then
    if is_usable_foreign; then say "using the .venv that is already here"; else create_environment; fi
    install_packages
elif [ "$made_package" = "$package" ] && [ -x .venv/bin/agentcanvas ]; then
    build_page
    exit 0
fi
install_agentcanvas
build_page

{ place_line "$(version_of .venv/bin/python)" && package_line; } >$stamp.new
mv $stamp.new $stamp
rm -f $unfinished
say "ready: .venv/bin/agentcanvas"
