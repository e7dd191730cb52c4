"""irace's parameters.txt.

    name "switch" type (domain) [ | condition ]      type: c, o, i, r, or with ,log behind i and r
    [forbidden]                                      from here on an R expression per line
    [global]                                         from here on settings; digits is the one that matters

A switch is glued to the value as it stands: its trailing blank makes two words of them. There are no defaults; the
middle of a range and the first value of a list stand for them. A domain that depends on other parameters is refused.
"""

import re
from dataclasses import replace
from functools import partial

from captime.errors import ScenarioError
from captime.spaces.formats.lines import Draft
from captime.spaces.numbers import Float, integer_from, middle
from captime.spaces.parameters import Categorical, Ordinal, Parameter
from captime.spaces.passing import VALUE, WORDS, Passing
from captime.spaces.r_expression import read_r_clause
from captime.spaces.space import Space
from captime.spaces.values import number_in

_HEAD = re.compile(r"""(?P<name>[.\w]+)\s+(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)')\s*""")
_TYPE = re.compile(r"(?P<type>[coir](?:,log)?)\s*(?=\()")
_VALUE = re.compile(
    r"""\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s,()"']+(?:[ \t]+[^\s,()"']+)*))\s*"""
)
_SECTION = re.compile(r"\[\s*(\w+)\s*\]")
_GLOBAL = re.compile(r"(\w+)\s*=\s*(\S+)")


def read_irace(text: str, file: str) -> Space:
    """The space of a parameters.txt."""
    draft = Draft(file)
    section, digits = "", None
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        content = _without_comment(line).strip()
        if not content:
            continue
        try:
            named = _SECTION.fullmatch(content)
            if named is not None:
                section = _section(named.group(1))
            elif section == "forbidden":
                draft.forbidden.append((number, partial(read_r_clause, content)))
            elif section == "global":
                digits = _global(draft, number, content, digits)
            else:
                _declaration(draft, number, content)
        except ScenarioError as flaw:
            raise draft.flaw(number, flaw) from None
    if digits is not None:
        draft.parameters = {name: (line, _rounded(each, digits)) for name, (line, each) in draft.parameters.items()}
    return draft.space()


def _without_comment(line: str) -> str:
    """What stands before a # that is not inside quotation marks."""
    if "#" not in line:
        return line
    quote = ""
    for place, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == "#":
            return line[:place]
    return line


def _section(name: str) -> str:
    if name not in ("forbidden", "global"):
        raise ScenarioError(f"found the section [{name}], expected [forbidden] or [global]")
    return name


def _global(draft: Draft, line: int, content: str, digits: int | None) -> int | None:
    found = _GLOBAL.fullmatch(content)
    if found is None:
        raise ScenarioError(f"found {content[:30]!r}, expected a setting such as digits = 4")
    if found.group(1) != "digits":
        draft.notes.append(f"line {line}: {found.group(1)} means nothing here and is left aside")
        return digits
    number = number_in(found.group(2))
    if number is None or not number.is_integer() or not 1 <= number <= 15:
        raise ScenarioError(f"found digits = {found.group(2)}, expected a whole number from 1 to 15")
    return int(number)


def _rounded(parameter: Parameter, digits: int) -> Parameter:
    if not isinstance(parameter, Float):
        return parameter
    rounded = replace(parameter, digits=digits)
    return replace(rounded, default=min(max(round(parameter.default, digits), parameter.low), parameter.high))


def _declaration(draft: Draft, line: int, content: str) -> None:
    head = _HEAD.match(content)
    if head is None:
        raise ScenarioError(
            f'found {content[:30]!r}, expected a name and a switch in quotation marks, as in: decay "--decay=" r (0, 1)'
        )
    kind = _TYPE.match(content, head.end())
    if kind is None:
        raise ScenarioError(
            f"found {content[head.end() :][:30]!r} after the switch, expected one of c, o, i, r, i,log or r,log and a "
            "domain in brackets"
        )
    values, after = _domain(content[kind.end() :])
    switch = head.group("double") if head.group("double") is not None else head.group("single")
    draft.declare(line, _parameter(head.group("name"), switch, kind.group("type"), values))
    rest = after.strip()
    if rest.startswith("|"):
        draft.conditions.append((head.group("name"), line, partial(read_r_clause, rest[1:].strip())))
    elif rest:
        raise ScenarioError(f"found {rest[:30]!r} after the domain, expected | and a condition, or the end of the line")


def _domain(text: str) -> tuple[list[tuple[str, bool]], str]:
    """The values between the brackets, each with whether it was in quotation marks, and what comes after them."""
    values: list[tuple[str, bool]] = []
    place = 1
    while True:
        found = _VALUE.match(text, place)
        if found is None:
            raise ScenarioError(f"found {text[place:][:20]!r} in the domain, expected values with commas between them")
        quoted = found.group("bare") is None
        value = found.group(found.lastgroup or "bare")
        values.append((value, quoted))
        place = found.end()
        if text.startswith(")", place):
            return values, text[place + 1 :]
        if not text.startswith(",", place):
            raise ScenarioError(f"found {text[place:][:20]!r} in the domain, expected a comma or the closing bracket")
        place += 1


def _parameter(name: str, switch: str, kind: str, values: list[tuple[str, bool]]) -> Parameter:
    texts = [text for text, _ in values]
    if kind in ("c", "o"):
        # irace leaves it to the shell to cut a value with blanks into words.
        spaced = any(text.split() not in ([], [text]) or text.isspace() for text in texts)
        passing = Passing(switch + (WORDS if spaced else VALUE))
        maker = Ordinal if kind == "o" else Categorical
        return maker(name, tuple(texts), texts[0], None, passing, assumed=True)
    if len(values) != 2:
        raise ScenarioError(f"{name}: the domain has {len(values)} values, expected the two ends of the range")
    log, passing = kind.endswith(",log"), Passing(switch + VALUE)
    low, high = (_end(name, text) for text in texts)
    if kind.startswith("i"):
        return integer_from(name, low, high, None, log=log, passing=passing)
    return Float(name, low, high, middle(low, high, log=log, integer=False), log, passing=passing, assumed=True)


def _end(name: str, text: str) -> float:
    number = number_in(text)
    if number is None:
        raise ScenarioError(
            f"{name}: an end of the range is {text!r}, expected a number. Ranges that depend on other parameters are "
            "not supported: give the widest one, and forbid the rest below [forbidden]"
        )
    return number
