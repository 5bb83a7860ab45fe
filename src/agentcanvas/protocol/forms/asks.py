"""What a prompt says to get an answer in a given form (T6).

Each text is short and ends with a filled example that the form's own reader accepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from agentcanvas.protocol.forms.handoff import Handoff
from agentcanvas.protocol.forms.message_form import MessageForm
from agentcanvas.protocol.forms.standard import StandardMessage, StandardResponse
from agentcanvas.protocol.forms.text_form import TextForm

STYLE = """\
Write directly, technically and briefly; use lists.
State failures and blockers. Do not guess: what you cannot check becomes a question."""

_MESSAGE = """\
Answer in five parts under these numbered headings: Intent in one line; Plan with 3 to 7 steps; \
at most 3 Open Questions; "- None" where a list is empty. Example:

1. Intent
Split the API endpoints
2. Inputs
- src/api.ts; no new dependency
3. Plan
1. Read src/api.ts
2. Move the routes to src/routes.ts
3. Run the tests
4. Actions
- changed src/api.ts, src/routes.ts
- npm test: 5 passed, 0 failed
5. Open Questions
- Keep the old path as an alias?
"""

_RESPONSE = """\
Answer in six parts under these numbered headings; "- None" where a list is empty; end with the \
word DONE alone, or with the next steps as a list. Example:

1. Intent
Split the API endpoints
2. Assumptions/Inputs
- src/api.ts; Node 20; scope src/**
3. Plan
1. Read src/api.ts
2. Move the routes to src/routes.ts
3. Run the tests
4. Actions/Artifacts
- changed src/api.ts, src/routes.ts
- npm test: 5 passed, 0 failed
5. Risks/Safety Notes
- Callers that import internals
6. Next Steps or DONE
DONE
"""

_HANDOFF = """\
Hand your change over with one HANDOFF block. DoD says what to run, count or see, so that someone \
else can check it; name at least one changed file; leave Tests out if there are none. Example:

HANDOFF
Context:        The API module mixes routing and error handling
Goal:           Split the endpoints and add error handling
DoD:            npm test passes, build succeeds, 0 lint errors
SandboxWorkDir: .agentcanvas/sandboxes/run_20260219_100000/coder-1/work
ProposalJson:   .agentcanvas/sandboxes/run_20260219_100000/coder-1/proposal/proposal.json
ChangedFiles:
  - src/api.ts
  - src/routes.ts
Tests:
  - npm test
Next:
  - Orchestrator: review + apply or request changes
"""

_JSON = """\
Answer with one JSON value that fits the given schema and with nothing else: no code fence, no \
comment, no text around it.
"""

_ACL = """\
Answer with one FIPA-ACL message and nothing else: a performative of the FIPA library, then \
parameters; the content in double quotes, with \\" for a quote inside. Example:

(propose :sender (agent-identifier :name coder-1) :receiver (set (agent-identifier :name manager)) \
:content "I split src/api.ts in 2 turns" :language english :protocol fipa-contract-net \
:conversation-id task-1 :in-reply-to cfp-1)
"""

_PARTS = """\
Answer with a JSON array of parts and nothing else. A part is a text, or an image (png, jpeg, gif \
or webp) with its content as base64, or by reference if it is over 64 kB. Ask for a clearer image \
where you cannot read one. Example:

[{"type":"text","text":"The button is 4 px too low."},{"type":"image","media":"image/png",\
"data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=",\
"alt":"the button, one pixel of it"}]
"""

FORM_ASKS: Mapping[MessageForm, str] = MappingProxyType(
    {
        MessageForm.NL_TEXT: f"{STYLE}\n",
        MessageForm.STRUCTURED_JSON: _JSON,
        MessageForm.ACL_PERFORMATIVE: _ACL,
        MessageForm.MULTIMODAL: _PARTS,
    }
)

TEXT_ASKS: Mapping[type[TextForm], str] = MappingProxyType(
    {
        StandardMessage: f"{STYLE}\n{_MESSAGE}",
        StandardResponse: f"{STYLE}\n{_RESPONSE}",
        Handoff: f"{STYLE}\n{_HANDOFF}",
    }
)
