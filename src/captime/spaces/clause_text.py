"""Clauses as text, in the language of new-style PCS files, so that they read back as what they were."""

import re

from captime.spaces.clauses import (
    ARITHMETIC,
    OPPOSITE,
    Among,
    Both,
    Certain,
    Clause,
    Comparison,
    Constant,
    Either,
    Neither,
    Operation,
    Reading,
    Term,
    both,
    either,
)
from captime.spaces.values import Value, text_of

_PLAIN = re.compile(r"[\w.:@$;?\\/*+%-]+")
_NEVER = "0 > 1"
_ALWAYS = "0 < 1"


def clause_text(clause: Clause) -> str:
    """The clause as text; brackets only where they are needed."""
    match clause:
        case Among(parameter, (value,)):
            return f"{parameter.name} == {value_text(value)}"
        case Among(parameter, values):
            return f"{parameter.name} in {{{', '.join(value_text(value) for value in values)}}}"
        case Neither(Among(parameter, (value,))):
            return f"{parameter.name} != {value_text(value)}"
        case Comparison(left, sign, right):
            return f"{_term_text(left)} {sign} {_term_text(right)}"
        case Both(parts):
            return " && ".join(_bracketed(part, isinstance(part, Either)) for part in parts)
        case Either(parts):
            return " || ".join(clause_text(part) for part in parts)
        case Neither(part):
            return f"!({clause_text(part)})"
        case _:
            return _ALWAYS if isinstance(clause, Certain) and clause.answer else _NEVER


def _bracketed(clause: Clause, needed: bool) -> str:
    return f"({clause_text(clause)})" if needed else clause_text(clause)


def _term_text(term: Term) -> str:
    match term:
        case Reading(parameter):
            return parameter.name
        case Constant(number):
            return text_of(int(number) if number.is_integer() else number)
        case Operation(name, (left, right)) if name in ARITHMETIC:
            return f"({_term_text(left)} {name} {_term_text(right)})"
        case Operation(name, terms):
            return f"{name}({', '.join(_term_text(each) for each in terms)})"
        case _:
            return ""


def value_text(value: Value) -> str:
    """A value, in quotation marks if it would be taken for something else."""
    text = text_of(value)
    plain = _PLAIN.fullmatch(text) and text != "in"
    if isinstance(value, str) and not plain:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return text


def spread(clause: Clause) -> Clause:
    """The same clause with negations only at its leaves, as `!=` or as the opposite sign."""
    match clause:
        case Both(parts):
            return both([spread(part) for part in parts])
        case Either(parts):
            return either([spread(part) for part in parts])
        case Neither(Neither(part)):
            return spread(part)
        case Neither(Both(parts)):
            return either([spread(Neither(part)) for part in parts])
        case Neither(Either(parts)):
            return both([spread(Neither(part)) for part in parts])
        case Neither(Among(parameter, values)) if len(values) > 1:
            return both([Neither(Among(parameter, (value,))) for value in values])
        case Neither(Comparison(left, sign, right)):
            return Comparison(left, OPPOSITE[sign], right)
        case Neither(Certain(answer)):
            return Certain(not answer)
        case _:
            return clause


def alternatives(clause: Clause, most: int = 256) -> list[list[Clause]] | None:
    """Conjunctions of leaves of which at least one must be true; None if there would be more than `most`."""
    match spread(clause):
        case Either(parts):
            lists = [alternatives(part, most) for part in parts]
            found = [each for part in lists if part is not None for each in part]
            return found if None not in lists and len(found) <= most else None
        case Both(parts):
            product: list[list[Clause]] = [[]]
            for part in parts:
                others = alternatives(part, most)
                if others is None or len(product) * len(others) > most:
                    return None
                product = [one + other for one in product for other in others]
            return product
        case leaf:
            return [[leaf]]
