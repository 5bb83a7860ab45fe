"""The examples below ``--help``: what a person would type, and what it is good for.

Each is a command line that its command takes as it stands; a test reads them all.
"""

from __future__ import annotations

from typing import Final

EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "agents": ("agents", "agents -c python --present   # who is here and knows Python"),
    "agents test": ("agents test claude",),
    "approvals": ("approvals",),
    "approvals list": ("approvals list",),
    "approvals grant": ("approvals grant 3f2a",),
    "approvals refuse": ('approvals refuse 3f2a --reason "not on a Friday"',),
    "attach": ("attach coder", "attach 174506 coder   # of a certain run"),
    "audit": ("audit verify", "audit export --output audit.jsonl"),
    "audit verify": (
        "audit verify",
        "audit verify --against old.jsonl   # compare with an export",
        "audit verify old.jsonl             # check an export alone",
    ),
    "audit export": ("audit export --output audit.jsonl",),
    "deadletters": ("deadletters", "deadletters resend 17"),
    "deadletters list": ("deadletters list",),
    "deadletters show": ("deadletters show 17",),
    "deadletters resend": ("deadletters resend 17 18", "deadletters resend --all"),
    "deadletters delete": ("deadletters delete 17",),
    "demo": ("demo", "demo --exit --no-browser   # for scripts"),
    "doctor": ("doctor",),
    "flow": ("flow new team --from team", "flow check"),
    "flow new": ("flow new", "flow new team --from team"),
    "flow list": ("flow list",),
    "flow show": ("flow show team", "flow show team --yaml"),
    "flow check": ("flow check", "flow check team"),
    "flow bounds": ("flow bounds team",),
    "hub": ("hub --data ~/hub", "hub --port 0 --person you"),
    "init": ("init", "init --from team"),
    "login": ("login claude", "login claude --out   # forget it"),
    "message": ("message check m.json", "message translate m.json --to acp"),
    "message check": ("message check m.json", "message check --strict log.jsonl"),
    "message translate": ("message translate m.json --to acp",),
    "pattern": ("pattern list", "pattern simulate debate_judge --agents noisy:0.7"),
    "pattern list": ("pattern list",),
    "pattern show": ("pattern show debate_judge", "pattern show debate_judge --prompts"),
    "pattern new-flow": ("pattern new-flow debate_judge argue --players debater=3",),
    "pattern simulate": (
        "pattern simulate debate_judge --agents noisy:0.7",
        "pattern simulate debate_judge --players debater=3 --runs 5000",
    ),
    "pattern run": ('pattern run debate_judge "Should we use tabs?"',),
    "proposals": ("proposals", "proposals 174506 task-1 --stat"),
    "report": ("report", "report 174506 --format html -o report.html"),
    "resume": ("resume", "resume 174506"),
    "retry": ("retry", "retry 174506"),
    "review": (
        "review           # show what waits, and ask",
        "review --apply   # if only one change waits",
        'review 174506 task-1 --revise "add a test"',
        "review 174506 task-1 --apply --only src/parser.py#1,3",
    ),
    "run": (
        'run "Fix the failing test"     # the first coding CLI that works',
        'run "Fix it" --command "my-agent {prompt}" --check "npm test"',
        'run team "Add a --json flag"   # a flow of this workspace',
        'run "Fix it" --no-input        # and decide later, with review',
    ),
    "runs": ("runs", "runs --json"),
    "sandbox": ("sandbox list", "sandbox clean --dry-run"),
    "sandbox make": ("sandbox make", "sandbox make --only 'src/**'"),
    "sandbox diff": ("sandbox diff", "sandbox diff > change.patch"),
    "sandbox list": ("sandbox list",),
    "sandbox clean": ("sandbox clean --dry-run", "sandbox clean --keep 3"),
    "schema": ("schema", "schema mac.schema.json", "schema --write schemas"),
    "send": (
        'send worker-1 code_review "look at src/parser.py" --wait',
        "send --file m.json",
    ),
    "serve": ("serve", "serve --port 0 --no-browser"),
    "show": ("show", "show 174506"),
    "stop": ("stop", "stop --agent coder   # only what this agent does now"),
    "store": ("store check", "store backup copy.db"),
    "store check": ("store check", "store check --store ~/hub/agentcanvas.db"),
    "store backup": ("store backup copy.db",),
    "store restore": ("store restore copy.db",),
    "tail": ("tail", "tail --agent worker-1 --kind task"),
    "tell": ("tell coder keep the old name",),
    "token": ("token new worker-1 --data ~/hub", "token list"),
    "token new": (
        "token new worker-1 --data ~/hub",
        "token new door:prometheus --scope read --out token.txt",
    ),
    "token list": ("token list --data ~/hub",),
    "token revoke": ("token revoke worker-1",),
    "token callback-key": ("token callback-key",),
    "trace": ("trace m-1",),
    "transcript": ("transcript coder", "transcript 174506 coder --follow"),
    "trust": ("trust", "trust --show", "trust team.yaml   # a flow that lies elsewhere"),
    "undo": ("undo", "undo 174506 task-1"),
}


def print_examples(words: str) -> None:
    """Print those of a command, as they are typed."""
    lines = [f"agentcanvas {line}" for line in EXAMPLES.get(words, ())]
    if lines:
        print(" Examples:" if len(lines) > 1 else " Example:")
        print("\n".join(f"   {line}" for line in lines), end="\n\n")
