"""The five-part message, the six-part response and the HANDOFF block, as people write them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import msgspec
import pytest

from agentcanvas.errors import FormError
from agentcanvas.protocol.forms import (
    FormProblem,
    Handoff,
    StandardMessage,
    StandardResponse,
    TextForm,
    check,
    parse,
    problems,
    tidy,
    tidy_line,
    write,
)

pytestmark = pytest.mark.req("T4")

EXAMPLES = Path(__file__).parent / "examples"


def example(name: str) -> str:
    return (EXAMPLES / name).read_text(encoding="utf-8")


MESSAGE = StandardMessage(
    intent="Split the API endpoints",
    inputs=("src/api.ts; no new dependency",),
    plan=("Read src/api.ts", "Move routes to src/routes.ts", "Run the tests"),
    actions=("changed src/api.ts, src/routes.ts; npm test: 5 passed",),
    open_questions=("Keep the old path as an alias?",),
)
RESPONSE = StandardResponse(
    intent="Split the API endpoints",
    inputs=("src/api.ts; Node 20; scope src/**",),
    plan=("Read", "Move routes", "Test"),
    actions=("src/api.ts, src/routes.ts",),
    risks=("Callers that import internals",),
)
HANDOFF = Handoff(
    context="The API module mixes routing and error handling",
    goal="Split the endpoints and add error handling",
    dod="pytest passes, build succeeds, 0 lint errors",
    sandbox_work_dir=".agentcanvas/sandboxes/run_1/custom_coder-1/work",
    proposal_json=".agentcanvas/sandboxes/run_1/custom_coder-1/proposal/proposal.json",
    changed_files=("src/api.ts", "src/routes.ts"),
    tests=("npm test",),
    next=("Orchestrator: review + apply or request changes",),
)


def refused(text: str, form: type[TextForm]) -> FormError:
    with pytest.raises(FormError) as caught:
        parse(text, form)
    return caught.value


def parts_named(found: tuple[FormProblem, ...]) -> list[str]:
    return [problem.part for problem in found]


# --- the documents' own examples ----------------------------------------------------------------


@pytest.mark.req("T1")
def test_the_example_message_is_read_and_written_to_the_letter() -> None:
    text = example("ac_message.txt")
    assert parse(text, StandardMessage) == MESSAGE
    assert write(MESSAGE) == text
    assert problems(text, StandardMessage) == ()


@pytest.mark.req("T2")
def test_the_example_response_is_read_and_written_to_the_letter() -> None:
    text = example("ac_response.txt")
    assert parse(text, StandardResponse) == RESPONSE
    assert parse(text, StandardResponse).done
    assert write(RESPONSE) == text
    assert problems(text, StandardResponse) == ()


@pytest.mark.req("T3")
def test_the_example_handoff_is_read_and_written_to_the_letter() -> None:
    text = example("ac_handoff.txt")
    assert parse(text, Handoff) == HANDOFF
    assert write(HANDOFF) == text
    assert problems(text, Handoff) == ()


@pytest.mark.req("T3")
def test_the_unfilled_template_has_the_form_but_each_placeholder_is_named() -> None:
    text = example("ac_handoff_template.txt")
    template = parse(text, Handoff)
    assert template.changed_files == ("path/to/file1", "path/to/file2")
    assert write(template) == text
    unfilled = ["Context", "Goal", "DoD", "SandboxWorkDir", "ProposalJson", "ChangedFiles"]
    assert parts_named(check(template)) == unfilled
    assert parts_named(problems(text, Handoff)) == unfilled
    assert all("placeholder" in problem.sentence for problem in check(template))


# --- how models write it ------------------------------------------------------------------------

AS_WRITTEN = {
    "markdown headings": """
        ## 1. Intent
        Split the API endpoints

        ## 2. Inputs
        - src/api.ts; no new dependency

        ## 3. Plan
        1. Read src/api.ts
        2. Move routes to src/routes.ts
        3. Run the tests

        ## 4. Actions
        * changed src/api.ts, src/routes.ts; npm test: 5 passed

        ## 5. Open Questions
        • Keep the old path as an alias?
        """,
    "bold titles on the line of their text": """
        **Intent:** Split the API endpoints
        **Inputs:** src/api.ts; no new dependency
        **Plan:**
        1) Read src/api.ts
        2) Move routes to src/routes.ts
        3) Run the tests
        **Actions**: changed src/api.ts, src/routes.ts; npm test: 5 passed
        **Open Questions** — Keep the old path as an alias?
        """,
    "bold titles as list entries": """
        - **Intent:** Split the API endpoints
        - **Inputs:**
          - src/api.ts; no new dependency
        - **Plan:**
          1. Read src/api.ts
          2. Move routes to src/routes.ts
          3. Run the tests
        - **Actions:** changed src/api.ts, src/routes.ts; npm test: 5 passed
        - **Open Questions:**
          - Keep the old path as an alias?
        """,
    "numbers and bold in either order, remarks, rules between parts": """
        1. **Intent**
        Split the API endpoints
        ---
        **2. Inputs** (files, paths)
        - src/api.ts; no new dependency
        ---
        ### 3) Plan
        - Read src/api.ts
        - Move routes to src/routes.ts
        - Run the tests
        ---
        (4) Actions:
        - changed src/api.ts, src/routes.ts; npm test: 5 passed
        ---
        5. open question
        - Keep the old path as an alias?
        """,
    "a plan on one line, plain titles, no bullets": """
        Intent: Split the API endpoints
        Inputs
        src/api.ts; no new dependency
        Plan: 1. Read src/api.ts 2. Move routes to src/routes.ts; 3. Run the tests
        Actions
        changed src/api.ts, src/routes.ts; npm test: 5 passed
        Open Questions
        Keep the old path as an alias?
        """,
    "remarks before the colon": example("ac_message.txt")
    .replace("2. Inputs", "Inputs (files, paths):")
    .replace("4. Actions", "**Actions (so far)**"),
    "indented as a whole": indent(example("ac_message.txt"), "    "),
    "an intent behind a bullet": example("ac_message.txt").replace("\nSplit", "\n- Split"),
}


@pytest.mark.req("T1")
@pytest.mark.parametrize("text", AS_WRITTEN.values(), ids=AS_WRITTEN.keys())
def test_a_message_is_read_in_the_ways_models_write_it(text: str) -> None:
    assert parse(dedent(text), StandardMessage) == MESSAGE


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
@pytest.mark.parametrize("form", [MESSAGE, RESPONSE, HANDOFF], ids=lambda form: type(form).__name__)
def test_other_line_ends_make_no_difference(form: TextForm, newline: str) -> None:
    assert parse("\ufeff" + write(form).replace("\n", newline), type(form)) == form


@pytest.mark.parametrize("form", [MESSAGE, RESPONSE, HANDOFF], ids=lambda form: type(form).__name__)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Sure! Here is my answer.\n\n", ""),
        ("Plan: to answer as asked.\nGoal: the same.\n\n", ""),
        ("", "\nLet me know if you need anything else.\n"),
        ("", "---\nThat is all.\n"),
        ("", "## Notes\nNothing.\n"),
        ("```\n", "```\n"),
        ("Here:\n```text\n", "```\nThat was it.\n- really\n"),
        ("```sh\nls\n```\nDone, see:\n~~~~\n", "~~~~\nBye\n"),
        ("```\n", ""),
    ],
)
def test_text_and_fences_around_a_block_are_left_aside(
    form: TextForm, before: str, after: str
) -> None:
    assert parse(before + write(form) + after, type(form)) == form


@pytest.mark.req("T3")
@pytest.mark.parametrize(
    "heading", ["## HANDOFF", "**HANDOFF**", "=== HANDOFF ===", "Handoff:", "- HANDOFF"]
)
def test_a_handoff_may_be_headed_and_keyed_in_other_ways(heading: str) -> None:
    text = f"""{heading}

- **Context**: The API module mixes routing and error handling
- **Goal**: Split the endpoints and add error handling
- **Definition of Done**: pytest passes, build succeeds, 0 lint errors
- **Sandbox Work Dir**: `.agentcanvas/sandboxes/run_1/custom_coder-1/work`
- **Proposal JSON**: `.agentcanvas/sandboxes/run_1/custom_coder-1/proposal/proposal.json`
- **Changed Files**: `src/api.ts`, `src/routes.ts`
- **Tests**:
    * npm test
- **Next**: Orchestrator: review + apply or request changes
"""
    assert parse(text, Handoff) == HANDOFF


@pytest.mark.parametrize("form", [MESSAGE, RESPONSE, HANDOFF], ids=lambda form: type(form).__name__)
def test_every_other_spelling_of_a_title_is_read(form: TextForm) -> None:
    spellings = {
        "Open Questions": ["Open question", "Questions"],
        "Assumptions/Inputs": ["Assumptions / Inputs", "Assumptions and Inputs", "Inputs"],
        "Actions/Artifacts": ["Actions & Artifacts", "Actions", "Artifacts"],
        "Risks/Safety Notes": ["Risks / Safety Notes", "Risks", "Safety notes"],
        "Next Steps or DONE": ["Next Steps / DONE", "Next steps", "Next step"],
        "DoD": ["Definition of Done", "Definition of Done (DoD)"],
        "SandboxWorkDir": ["Sandbox Work Dir", "sandbox_work_directory"],
        "ProposalJson": ["Proposal JSON", "proposal_json"],
        "ChangedFiles": ["Changed Files", "changed_files"],
        "Next": ["Next Steps", "Next step"],
    }
    tried = {part.title for part in form.SHAPE.parts if part.also}
    assert tried <= set(spellings)
    for title in tried:
        heading = next(form.SHAPE.heading(part) for part in form.SHAPE.parts if part.title == title)
        for spelling in spellings[title]:
            text = write(form).replace(heading, heading.replace(title, spelling), 1)
            assert parse(text, type(form)) == form, spelling


@pytest.mark.req("T3")
def test_a_definition_of_done_may_be_a_list_of_its_own() -> None:
    text = write(HANDOFF).replace(
        "DoD:            pytest passes, build succeeds, 0 lint errors",
        "DoD:\n  - pytest passes\n  - 0 lint errors",
    )
    assert parse(text, Handoff).dod == "- pytest passes\n- 0 lint errors"


def test_an_entry_keeps_its_further_lines_its_own_list_and_its_code() -> None:
    text = dedent("""\
        1. Intent
        Show
        2. Inputs
        - a first line
          and a second

          and a paragraph
        - files:
          - a.py
            - deeper
        - ran
        ```sh
        1. Intent
          pytest
        ```
        3. Plan
        1. one
        2. two
        3. three
          - with a part
        4. Actions
        - None
        5. Open Questions
        None.
        """)
    message = parse(text, StandardMessage)
    assert message.inputs == (
        "a first line\nand a second\n\nand a paragraph",
        "files:\n- a.py\n  - deeper",
        "ran\n```sh\n1. Intent\n  pytest\n```",
    )
    assert message.plan == ("one", "two", "three\n- with a part")
    assert message.actions == message.open_questions == ()
    assert parse(write(message), StandardMessage) == message


def test_a_code_block_inside_a_fenced_form_does_not_end_it() -> None:
    shown = msgspec.structs.replace(MESSAGE, inputs=("run\n```sh\nls\n```",))
    inner = write(MESSAGE).replace("src/api.ts; no new dependency", "run\n```sh\nls\n```")
    assert parse(f"```\n{inner}```\nbye\n", StandardMessage) == shown


def test_a_code_block_that_is_never_closed_does_not_swallow_a_fenced_form() -> None:
    inner = write(MESSAGE).replace("- changed", "- ran\n```sh\n- changed")
    message = parse(f"```\n{inner}```\nbye\n", StandardMessage)
    assert message.actions == ("ran\n```sh", *MESSAGE.actions)
    assert message.open_questions == MESSAGE.open_questions


def test_prose_between_bullets_of_an_inner_part_is_kept() -> None:
    text = (
        write(MESSAGE)
        .replace("4. Actions\n", "4. Actions\nI did this:\n\n")
        .replace("5. Open", "\nAnd nothing else.\n5. Open")
    )
    assert parse(text, StandardMessage).actions == (
        "I did this:",
        *MESSAGE.actions,
        "And nothing else.",
    )


@pytest.mark.parametrize(
    "said", ["None", "- none.", "N/A", "(none)", "Nothing", "* None at this time.", "No questions"]
)
def test_the_usual_words_for_nothing_are_an_empty_list(said: str) -> None:
    text = write(MESSAGE).replace("- Keep the old path as an alias?", said)
    assert parse(text, StandardMessage).open_questions == ()


@pytest.mark.req("T1")
def test_a_list_entry_that_only_begins_like_a_title_stays_an_entry() -> None:
    text = write(MESSAGE).replace("- changed", "- Plan: kept\n- **Inputs**: read\n- changed")
    text = text.replace("1. Read", "1. Plan: read")
    message = parse(text, StandardMessage)
    assert message.actions[:2] == ("Plan: kept", "**Inputs**: read")
    assert message.plan[0] == "Plan: read src/api.ts"


@pytest.mark.parametrize(
    "line",
    ["Plan B is ready", "Plans: two", "Inputs/Outputs: none", "**Plan: B** is ready", "Intents"],
)
def test_a_sentence_that_only_begins_like_a_title_stays_a_sentence(line: str) -> None:
    text = write(MESSAGE).replace("- changed", f"{line}\n- changed")
    assert parse(text, StandardMessage).actions[0] == line


# --- DONE or next steps -------------------------------------------------------------------------


@pytest.mark.req("T2")
@pytest.mark.parametrize(
    ("said", "note"),
    [
        ("DONE", ""),
        ("- DONE", ""),
        ("**DONE**", ""),
        ("✅ Done.", ""),
        ("done", ""),
        ("DONE: all 5 tests pass", "all 5 tests pass"),
        ("**DONE** — all 5 tests pass", "all 5 tests pass"),
        ("DONE. All\nis well", "All\nis well"),
        ("DONE\nAll 5 tests pass", "All 5 tests pass"),
    ],
)
def test_done_is_understood_and_what_stands_beside_it_is_kept(said: str, note: str) -> None:
    text = write(RESPONSE).replace("\nDONE\n", f"\n{said}\n")
    response = parse(text, StandardResponse)
    assert response.done
    assert response.done_note == note


@pytest.mark.req("T2")
def test_next_steps_mean_that_it_is_not_done() -> None:
    response = parse(
        write(RESPONSE).replace("\nDONE\n", "\n1. Review\n2. Merge\n"), StandardResponse
    )
    assert not response.done
    assert response.next_steps == ("Review", "Merge")


@pytest.mark.req("T2")
def test_a_step_about_being_done_is_a_step() -> None:
    text = write(RESPONSE).replace("\nDONE\n", "\n- Done is when the reviewer says so\n")
    assert parse(text, StandardResponse).next_steps == ("Done is when the reviewer says so",)


@pytest.mark.req("T2")
@pytest.mark.parametrize("said", ["DONE\n- Merge", "- Merge\n- DONE", "None", ""])
def test_done_and_steps_together_or_neither_is_refused(said: str) -> None:
    error = refused(write(RESPONSE).replace("\nDONE\n", f"\n{said}\n"), StandardResponse)
    assert error.part == "Next Steps or DONE"
    assert "DONE" in str(error)


@pytest.mark.req("T2")
def test_a_note_beside_steps_cannot_be_made() -> None:
    with pytest.raises(FormError) as caught:
        msgspec.structs.replace(RESPONSE, next_steps=("Merge",), done_note="all well")
    assert caught.value.part == "Next Steps or DONE"
    with pytest.raises(FormError, match=r"tidy\(\)"):
        msgspec.structs.replace(RESPONSE, done_note=" all well")


# --- breaches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [MESSAGE, RESPONSE, HANDOFF], ids=lambda form: type(form).__name__)
def test_each_missing_part_is_named(form: TextForm) -> None:
    for part in form.SHAPE.parts:
        lines = write(form).split("\n")
        start = next(
            place for place, line in enumerate(lines) if line.startswith(form.SHAPE.heading(part))
        )
        end = start + 1
        titles = tuple(form.SHAPE.heading(other) for other in form.SHAPE.parts)
        while end < len(lines) and not lines[end].startswith(titles):
            end += 1
        text = "\n".join(lines[:start] + lines[end:]) + "\n"
        if part.optional:
            assert problems(text, type(form)) == ()
            continue
        error = refused(text, type(form))
        assert error.part == part.title
        assert form.SHAPE.heading(part) in str(error)
        assert parts_named(problems(text, type(form))) == [part.title]


def test_all_breaches_are_found_at_once() -> None:
    text = "1. Intent\nOne\nTwo\n3. Plan\n1. Only this\n5. Open Questions\n- a\n- b\n- c\n- d\n"
    assert parts_named(problems(text, StandardMessage)) == [
        "Intent",
        "Inputs",
        "Plan",
        "Actions",
        "Open Questions",
    ]
    assert refused(text, StandardMessage).part == "Intent"


def test_a_text_without_any_form_misses_every_part() -> None:
    titles = [part.title for part in StandardResponse.SHAPE.parts]
    assert parts_named(problems("I have finished the work.", StandardResponse)) == titles
    assert parts_named(problems("", StandardResponse)) == titles


@pytest.mark.req("T1")
@pytest.mark.parametrize(
    ("count", "fits"), [(0, False), (2, False), (3, True), (7, True), (8, False)]
)
def test_a_plan_has_three_to_seven_steps(count: int, fits: bool) -> None:
    steps = "".join(f"{number}. step\n" for number in range(1, count + 1))
    text = f"1. Intent\nx\n2. Inputs\n3. Plan\n{steps}4. Actions\n5. Open Questions\n"
    if fits:
        assert len(parse(text, StandardMessage).plan) == count
    else:
        error = refused(text, StandardMessage)
        assert error.part == "Plan"
        assert f"has {count} steps" in str(error)
        assert "3 to 7" in str(error)


@pytest.mark.req("T1")
def test_more_than_three_questions_are_refused() -> None:
    text = write(MESSAGE) + "- b?\n- c?\n"
    assert len(parse(text, StandardMessage).open_questions) == 3
    error = refused(text + "- d?\n", StandardMessage)
    assert error.part == "Open Questions"
    assert "at most 3" in str(error)


@pytest.mark.req("T1")
def test_an_intent_of_several_lines_is_refused() -> None:
    error = refused(write(MESSAGE).replace("Split", "Split\nand join"), StandardMessage)
    assert error.part == "Intent"
    assert "2 lines" in str(error)


@pytest.mark.req("T2")
def test_a_response_without_a_step_in_its_plan_is_refused() -> None:
    error = refused(
        write(RESPONSE).replace("1. Read\n2. Move routes\n3. Test\n", ""), StandardResponse
    )
    assert error.part == "Plan"


def test_a_part_that_is_there_twice_is_refused() -> None:
    error = refused(write(MESSAGE) + "2. Inputs\n- more\n", StandardMessage)
    assert error.part == "Inputs"
    assert "twice" in str(error)


@pytest.mark.req("T3")
def test_a_handoff_without_a_changed_file_is_refused() -> None:
    for files in ("", "  - None\n"):
        text = write(HANDOFF).replace("  - src/api.ts\n  - src/routes.ts\n", files)
        assert refused(text, Handoff).part == "ChangedFiles"
    with pytest.raises(FormError) as caught:
        msgspec.structs.replace(HANDOFF, changed_files=())
    assert caught.value.part == "ChangedFiles"


@pytest.mark.req("T3")
@pytest.mark.parametrize("key", ["Context", "Goal", "DoD", "SandboxWorkDir", "ProposalJson"])
def test_an_empty_handoff_part_is_refused(key: str) -> None:
    lines = [f"{key}:" if line.startswith(key) else line for line in write(HANDOFF).split("\n")]
    error = refused("\n".join(lines), Handoff)
    assert error.part == key
    assert "empty" in str(error)


@pytest.mark.req("T3")
def test_a_handoff_must_open_with_its_word() -> None:
    error = refused(write(HANDOFF).removeprefix("HANDOFF\n"), Handoff)
    assert error.part == "HANDOFF"


@pytest.mark.req("T3")
def test_two_handoff_blocks_in_one_text_are_refused() -> None:
    error = refused(write(HANDOFF) * 2, Handoff)
    assert error.part == "HANDOFF"
    assert "second" in str(error)


@pytest.mark.req("T3")
@pytest.mark.parametrize("before", ["Tests:", "Next:"])
@pytest.mark.parametrize("blank", ["", "\n"])
def test_a_part_a_handoff_does_not_have_is_not_taken_for_a_file(before: str, blank: str) -> None:
    text = write(HANDOFF).replace(before, f"{blank}Risks: none\n{before}")
    error = refused(text, Handoff)
    assert error.part == "Risks"
    assert "ChangedFiles" in str(error)


@pytest.mark.req("T3")
def test_two_paths_where_one_belongs_are_refused() -> None:
    text = write(HANDOFF).replace("ChangedFiles:", "  elsewhere/proposal.json\nChangedFiles:")
    assert refused(text, Handoff).part == "ProposalJson"


@pytest.mark.req("T3")
def test_a_definition_of_done_that_nobody_can_check_is_named_by_check_and_problems() -> None:
    vague = msgspec.structs.replace(HANDOFF, dod="It works well and looks good")
    assert parts_named(check(vague)) == ["DoD"]
    assert parts_named(problems(write(vague), Handoff)) == ["DoD"]
    assert "0 lint errors" in check(vague)[0].sentence
    assert check(HANDOFF) == ()


@pytest.mark.parametrize("text", ["[one line]", "<goal>", "...", "…", "TODO", "tbd."])
def test_an_unfilled_part_of_any_form_is_named(text: str) -> None:
    assert parts_named(check(msgspec.structs.replace(MESSAGE, intent=text))) == ["Intent"]
    assert parts_named(check(msgspec.structs.replace(MESSAGE, actions=(text,)))) == ["Actions"]


@pytest.mark.parametrize("text", ["[x] done", "see [a](b)", "make Vec<T> of it", "todo list app"])
def test_brackets_inside_a_text_are_not_placeholders(text: str) -> None:
    assert check(msgspec.structs.replace(MESSAGE, intent=text)) == ()


# --- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("two\nlines", "2 lines"),
        (" led", "tidy()"),
        ("trailed ", "tidy()"),
        ("half \ud800", "surrogate"),
    ],
)
def test_a_value_that_could_not_be_written_and_read_back_cannot_be_made(
    text: str, reason: str
) -> None:
    with pytest.raises(FormError) as caught:
        msgspec.structs.replace(MESSAGE, intent=text)
    assert caught.value.part == "Intent"
    assert reason in str(caught.value)


@pytest.mark.parametrize("text", ["a\r\nb", "a \nb", "a\n", "\na"])
def test_an_entry_with_white_space_that_would_be_lost_cannot_be_made(text: str) -> None:
    with pytest.raises(FormError, match=r"tidy\(\)"):
        msgspec.structs.replace(MESSAGE, actions=(text,))
    assert msgspec.structs.replace(MESSAGE, actions=(tidy(text),)).actions == (tidy(text),)


def test_tidy_makes_any_text_fit_and_leaves_fitting_text_alone() -> None:
    assert tidy("  a  \r\n\tb\t\r\rc\ud800  ") == "a\n\tb\n\nc?"
    assert tidy_line(" a \r\n  b\n\n c") == "a b c"
    assert tidy("a\n\n  b") == "a\n\n  b"
    assert tidy(" \n ") == tidy_line("\n") == ""


def test_values_travel_as_json_and_a_breach_there_names_its_part_too() -> None:
    for form in (MESSAGE, RESPONSE, HANDOFF):
        assert msgspec.json.decode(msgspec.json.encode(form), type=type(form)) == form
    with pytest.raises(FormError) as caught:
        msgspec.json.decode(
            msgspec.json.encode({"intent": " x", "plan": ["a", "b", "c"]}), type=StandardMessage
        )
    assert caught.value.part == "Intent"


def test_the_counts_are_in_the_json_schema() -> None:
    schema = msgspec.json.schema(StandardMessage)["$defs"]["StandardMessage"]["properties"]
    assert (schema["plan"]["minItems"], schema["plan"]["maxItems"]) == (3, 7)
    assert schema["open_questions"]["maxItems"] == 3
    handoff = msgspec.json.schema(Handoff)["$defs"]["Handoff"]
    assert handoff["properties"]["changed_files"]["minItems"] == 1
    assert "tests" not in handoff["required"]


def test_a_form_error_is_a_user_error_with_its_own_code() -> None:
    error = refused("", Handoff)
    assert (error.code, error.category.value) == ("INVALID_FORM", "user_error")


@pytest.mark.req("T3")
def test_the_block_in_the_document_is_the_one_the_product_writes() -> None:
    document = (Path(__file__).parents[2] / "docs" / "forms.md").read_text(encoding="utf-8")
    assert document.split("```text\n")[1].split("```")[0] == write(HANDOFF)
