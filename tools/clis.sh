#!/bin/sh
# Installs the coding CLIs that the tests marked `clis` drive, each into a folder of its own below
# .clis/, and nothing elsewhere. Versions are those that were tried; one that cannot be had is said
# and left out, and its tests skip with the reason. An installed one costs nothing.
#   tools/clis.sh claude codex     only these
set -eu
cd "$(dirname "$0")/.."
root=$PWD/.clis
mkdir -p "$root"

# name, source, package, version
known='
node npm node 22.21.1
claude npm @anthropic-ai/claude-code 2.1.325
codex npm @openai/codex 0.166.0
gemini npm @google/gemini-cli 0.61.0
opencode npm opencode-ai 1.18.33
qwen npm @qwen-code/qwen-code 0.24.4
goose npm @aaif/goose 0.20.1
copilot npm @github/copilot 1.0.102
pi npm @earendil-works/pi-coding-agent 0.74.2
kimi npm @moonshot-ai/kimi-code 2.1.0
cline npm cline 3.0.65
aider pip aider-chat 0.86.2
'

# Their installers ask for no account and need no news.
export DO_NOT_TRACK=1 npm_config_fund=false npm_config_audit=false npm_config_update_notifier=false

install() {
    place=$root/$1
    stamp=$place/.version
    if [ "$(cat "$stamp" 2>/dev/null)" = "$3@$4" ]; then return; fi
    echo "installing $3 $4 ..." >&2
    rm -rf "$place"
    mkdir -p "$place"
    case $2 in
    npm) PATH=$root/node/bin:$PATH npm install --global --prefix "$place" --loglevel error "$3@$4" ;;
    pip) python3 -m venv "$place" && "$place/bin/pip" install -qq --disable-pip-version-check "$3==$4" ;;
    esac >"$place.log" 2>&1 || {
        echo "  $1 cannot be installed here; $place.log says why" >&2
        rm -rf "$place"
        return
    }
    # The package of goose keeps its program out of sight.
    if [ "$1" = goose ] && [ ! -e "$place/bin/goose" ]; then
        found=$(find "$place" -path '*goose-binary*/bin/goose' -type f | head -n 1)
        [ -z "$found" ] || ln -s "$found" "$place/bin/goose"
    fi
    echo "$3@$4" >"$stamp"
}

echo "$known" | while read -r name source package version; do
    [ -n "$name" ] || continue
    if [ $# -gt 0 ] && [ "$name" != node ]; then
        case " $* " in *" $name "*) ;; *) continue ;; esac
    fi
    install "$name" "$source" "$package" "$version"
done
