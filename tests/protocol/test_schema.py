"""The exported schemas say what the rules say."""

from __future__ import annotations

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest

from agentcanvas.app.schemas import documents
from agentcanvas.protocol.dialect import DialectName
from agentcanvas.protocol.rules import examine
from tests.protocol.strategies import MESSAGES
from tests.protocol.test_rules import message_files, messages

DOCUMENTS = documents()
SHAPE = {"required", "wanted", "type", "member", "range", "unknown-field"}


@pytest.mark.req("M1")
@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name != "asyncapi.json"])
def test_every_schema_is_a_valid_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(DOCUMENTS[name])


@pytest.mark.req("M1")
def test_an_example_fits_its_schema_exactly_when_it_has_no_breach_of_shape() -> None:
    seen = 0
    for path in message_files():
        for line in messages(path):
            report = examine(line.encode(), strict=True)
            assert report.dialect is not None
            schema = DOCUMENTS[f"{report.dialect}.schema.json"]
            fits = jsonschema.Draft202012Validator(schema).is_valid(json.loads(line))
            assert fits is not any(breach.rule in SHAPE for breach in report.breaches)
            seen += 1
    assert seen > 35


def references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [found for value in node.values() for found in references(value)]
    if isinstance(node, list):
        return [found for value in node for found in references(value)]
    return []


@pytest.mark.req("H1")
def test_the_asyncapi_document_names_every_message_and_its_references_lead_somewhere() -> None:
    document = DOCUMENTS["asyncapi.json"]
    count = sum(len(types) for types in MESSAGES.values())
    words = 3  # what is said about messages
    assert len(document["components"]["messages"]) == count + words == 23 + words
    assert set(document["channels"]["agent"]["messages"]) == set(document["components"]["messages"])
    for reference in references(document):
        here: Any = document
        for step in reference.removeprefix("#/").split("/"):
            here = here[step]
    families = {name.split(".")[0] for name in document["components"]["messages"]}
    assert families == {*DialectName, "frame"}
