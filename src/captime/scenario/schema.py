"""The JSON schema of the scenario, for editors: completion, checks and explanations while a file is written."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from captime.procedures import PROCEDURES
from captime.scenario.models import ScenarioModel

SCHEMA_FILE = "captime.schema.json"
"""The name under which the schema stands beside a scenario."""
SCHEMA_LINE = f"#:schema ./{SCHEMA_FILE}\n"
"""The first line of a scenario, by which editors with a TOML language server (Taplo) find the schema."""
_PARAMETER_TYPES = ["float", "int", "categorical", "ordinal", "bool", "constant"]
_SETTING = {
    "anyOf": [
        {"type": ["string", "number", "boolean"]},
        {"type": "array", "items": {"type": "string"}, "description": "Words of the command line."},
    ]
}


def scenario_schema() -> dict[str, Any]:
    """Return the schema; it knows every field, and the procedures that are installed."""
    schema = _without_titles(ScenarioModel.model_json_schema())
    fields = schema["properties"]
    fields["procedure"] = {"enum": sorted(PROCEDURES), "description": fields["procedure"]["description"]}
    candidate = {"type": "object", "additionalProperties": _SETTING}
    fields["configurations"] = {
        "description": fields["configurations"]["description"],
        "anyOf": [
            {"type": "array", "items": candidate},
            {"type": "object", "properties": {"file": {"anyOf": [{"type": "string"}, candidate]}},
             "additionalProperties": candidate},
        ],
    }  # fmt: skip
    parameter = {
        "type": "object",
        "properties": {"type": {"enum": _PARAMETER_TYPES, "description": "What kind of parameter it is."}},
    }
    fields["space"] = {
        "type": "object",
        "description": fields["space"]["description"],
        "properties": {
            "file": {"anyOf": [{"type": "string", "description": "A parameter file of another format."}, parameter]},
            "conditions": {"anyOf": [{"type": "array", "items": {"type": "string"}}, parameter]},
            "forbidden": {"anyOf": [{"type": "array"}, parameter]},
            "favourites": {"anyOf": [{"type": "array", "items": {"type": "object"}}, parameter]},
        },
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "captime scenario",
        "description": "Which configuration of a program is worth most, and how sure can one be?",
        **{name: value for name, value in schema.items() if name not in ("description", "title")},
    }


def schema_text() -> str:
    """Return the schema as the text of a file."""
    return json.dumps(scenario_schema(), indent=2, ensure_ascii=False) + "\n"


def write_schema(folder: Path) -> Path:
    """Write the schema beside a scenario, in place of one that an earlier release has written there."""
    path = folder / SCHEMA_FILE
    path.write_text(schema_text(), encoding="utf-8")
    return path


def _without_titles(value: Any) -> Any:
    """Return the schema without the titles that repeat the names of fields."""
    if isinstance(value, Mapping):
        return {
            name: _without_titles(each) for name, each in value.items() if name != "title" or not isinstance(each, str)
        }
    return [_without_titles(each) for each in value] if isinstance(value, list) else value
