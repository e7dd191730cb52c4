"""The page of scenario fields, made from the JSON schema of scenarios: `python docs/site/fields.py` prints it."""

import json
from collections.abc import Iterator
from typing import Any

from captime.scenario.template import scenario_schema

INTRODUCTION = """\
# Scenario fields

This page is generated from the JSON schema that `captime schema` prints: every field of a scenario, with its type and
default. [Scenarios](../scenario.md) explains the fields at length. An editor that knows the schema completes and
checks them while you type; `captime init` writes the schema beside the scenario.
"""


def page() -> str:
    """Return the page."""
    schema = scenario_schema()
    sections = [f"## Top level\n\n{_table('', schema, schema)}"]
    sections += [f"## `[{name}]`\n\n{about}{_table(name, part, schema)}" for name, about, part in _sections(schema)]
    return "\n".join([INTRODUCTION, *sections])


def _sections(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the tables of a scenario that have fields of their own, with their descriptions, outer ones first."""
    waiting = [("", schema)]
    while waiting:
        outer, part = waiting.pop(0)
        for name, field in part.get("properties", {}).items():
            inner = _record(field, schema)
            if inner is not None:
                path = f"{outer}.{name}".lstrip(".")
                about = inner.get("description") or field.get("description", "")
                yield path, f"{_escaped(about)}\n\n" if about else "", inner
                waiting.append((path, inner))


def _record(field: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any] | None:
    """Return the record that a field holds, if it holds one with named fields."""
    for choice in (field, *field.get("anyOf", ()), *field.get("allOf", ())):
        found = _resolved(choice, schema)
        if found.get("properties"):
            return found
    return None


def _resolved(part: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in part:
        found: dict[str, Any] = schema["$defs"][part["$ref"].rpartition("/")[2]]
        return found
    return part


def _table(path: str, part: dict[str, Any], schema: dict[str, Any]) -> str:
    required = set(part.get("required", ()))
    rows = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for name, field in part["properties"].items():
        whole = f"{path}.{name}".lstrip(".")
        default = "required" if name in required else _default(field)
        about = field.get("description") or _resolved(field, schema).get("description", "")
        rows.append(f"| `{whole}` | {_type(field, schema)} | {default} | {_escaped(about)} |")
    return "\n".join(rows) + "\n"


def _default(field: dict[str, Any]) -> str:
    value = field.get("default")
    return "" if value in (None, {}, []) else f"`{json.dumps(value, ensure_ascii=False)}`"


def _type(field: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return the type of a field in words."""
    if "$ref" in field:
        inner = _resolved(field, schema)
        return "table" if inner.get("properties") else _type(inner, schema)
    if "enum" in field:
        return ", ".join(f"`{json.dumps(each)}`" for each in field["enum"])
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    for key in ("anyOf", "oneOf", "allOf"):
        if key in field:
            kinds = [_type(each, schema) for each in field[key] if each.get("type") != "null"]
            return " or ".join(dict.fromkeys(kinds))
    kind = field.get("type")
    if isinstance(kind, list):
        return " or ".join(_plain(each) for each in kind if each != "null")
    if kind == "array":
        return f"list of {_type(field['items'], schema)}" if field.get("items") else "list"
    return _plain(str(kind)) if kind else "any value"


def _plain(kind: str) -> str:
    return {"object": "table", "string": "text", "integer": "whole number", "boolean": "true or false"}.get(kind, kind)


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    print(page())
