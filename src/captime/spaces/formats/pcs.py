"""PCS files, line by line: which kind of line it is, and whether the old or the new grammar reads it.

Lines of both dialects may stand in one file; every line tells by its form which it is. What one line says is read in
pcs_old and pcs_new.
"""

import re
from functools import partial

from captime.errors import ScenarioError
from captime.spaces.formats import pcs_new, pcs_old
from captime.spaces.formats.lines import Draft, numbered
from captime.spaces.pcs_expression import read_clause, read_forbidden
from captime.spaces.space import Space

_DECORATION = re.compile(r"(conditionals?|conditions|forbiddens?)\s*:?", re.IGNORECASE)
_NAME = re.compile(r"[^\s{}\[\]|,=\"'()]+")
_TYPE = re.compile(rf"\s+({'|'.join(pcs_new.TYPES)})\s*(?=[\[{{])", re.IGNORECASE)


def read_pcs(text: str, file: str) -> Space:
    """The space of a PCS file of either style."""
    draft = Draft(file)
    for line, content in numbered(text):
        try:
            _read_line(draft, line, content)
        except ScenarioError as flaw:
            raise draft.flaw(line, flaw) from None
    return draft.space()


def _read_line(draft: Draft, line: int, content: str) -> None:
    if _DECORATION.fullmatch(content) or "Conditionals:" in content or "Forbidden:" in content:
        return
    if content.startswith("{"):
        _read_forbidden(draft, line, content)
        return
    found = _NAME.match(content)
    if found is None:
        raise ScenarioError(f"found {content[:30]!r}, expected the name of a parameter or a {{forbidden combination}}")
    name, rest = found.group(), content[found.end() :]
    kind = _TYPE.match(rest)
    if kind is not None:
        rest = rest[kind.end() :]
    rest = rest.strip()
    if rest.startswith("|") and not rest.startswith("||"):
        _read_condition(draft, line, name, rest[1:])
        return
    if rest.startswith(('"', "'")):
        raise ScenarioError(
            f"found {rest[:30]!r} after {name}, which looks like a switch in irace's format; if it is, say so: --from "
            'irace, or format = "irace" in a scenario'
        )
    if not rest.startswith(("{", "[")):
        raise ScenarioError(
            f"found {rest[:30]!r} after {name}, expected a domain in braces or brackets, one of the types "
            f"{', '.join(pcs_new.TYPES)} before it, or | and a condition"
        )
    # Some ParamILS files put the condition behind the declaration.
    declaration, bar, condition = rest.partition("|")
    if kind is not None:
        draft.declare(line, pcs_new.read_declaration(name, kind.group(1).lower(), declaration))
    else:
        draft.declare(line, pcs_old.read_declaration(name, declaration))
    if bar:
        _read_condition(draft, line, name, condition)


def _read_condition(draft: Draft, line: int, child: str, text: str) -> None:
    text = text.strip()
    if not text:
        raise ScenarioError(f"the condition of {child} is empty, expected something like: parent in {{a, b}}")
    read = pcs_old.read_condition if pcs_old.is_plain_condition(text) else read_clause
    draft.conditions.append((child, line, partial(read, text)))


def _read_forbidden(draft: Draft, line: int, content: str) -> None:
    inside = content[1:].strip()
    if not inside.endswith("}"):
        raise ScenarioError(f"found {content[:30]!r}, expected a }} at the end of a forbidden combination")
    inside = inside[:-1].strip()
    if not inside:
        raise ScenarioError("found {}, expected a combination such as {p1=a, p2=b}")
    read = pcs_old.read_forbidden if pcs_old.is_plain_forbidden(inside) else read_forbidden
    draft.forbidden.append((line, partial(read, inside)))
