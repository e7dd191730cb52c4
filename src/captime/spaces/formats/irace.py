"""The expressions of irace's files, which are R: `(effort %in% c("mid", "high")) & (decay > 0.8)`.

R itself is a programming language; what is understood here is what conditions and forbidden combinations need:
comparisons, %in% with c(...), & | ! and their doubled forms, brackets, arithmetic with %% and a few functions,
as.numeric(), numbers, texts, TRUE and FALSE. Anything else is refused by name. Nothing is evaluated.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NoReturn

from captime.errors import ScenarioError
from captime.spaces.clauses import ARITY, SIGNS, Certain, Clause, Constant, Neither, Operation, both, either
from captime.spaces.formats.reading import Draft
from captime.spaces.matching import Operand, Written, among, compared, term
from captime.spaces.parameters import Categorical, Choice, Float, Ordinal, Parameter, integer_from, middle
from captime.spaces.space import Space
from captime.spaces.values import VALUE, WORDS, Passing, number_in

_DEEPEST = 40
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?L?)
      | (?P<name>[A-Za-z._][\w.]*|`[^`]+`)
      | (?P<mark>%in%|%%|&&|\|\||==|!=|<=|>=|[&|!<>+\-*/(),])
    )""",
    re.VERBOSE,
)
_KNOWN = "comparisons, %in% c(...), & | !, + - * / %%, as.numeric, " + ", ".join(ARITY)
_CERTAIN = {"TRUE": True, "T": True, "FALSE": False, "F": False}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


def read_r_clause(text: str, parameters: Mapping[str, Parameter]) -> Clause:
    """The clause that a whole R expression says about these parameters."""
    reader = _RReader(_tokens(text), parameters)
    clause = reader.clause(reader.disjunction(0))
    if reader.here.kind != "end":
        reader.refuse("& or | or the end")
    return clause


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    place, end = 0, len(text.rstrip())
    while place < end:
        found = _TOKEN.match(text, place)
        if found is None:
            rest = text[place:].strip()[:12]
            raise ScenarioError(f"found {rest!r}, expected one of: {_KNOWN}")
        kind = found.lastgroup or ""
        tokens.append(_Token(kind, found.group(kind)))
        place = found.end()
    return [*tokens, _Token("end", "")]


# What an R expression can be on the way: something true or false, or something to compare.
_Part = Clause | Operand


class _RReader:
    """A place in a list of tokens, moving right."""

    def __init__(self, tokens: list[_Token], parameters: Mapping[str, Parameter]) -> None:
        self.tokens = tokens
        self.parameters = parameters
        self.place = 0

    @property
    def here(self) -> _Token:
        return self.tokens[self.place]

    def refuse(self, expected: str) -> NoReturn:
        found = f"found {self.here.text!r}" if self.here.kind != "end" else "the expression ends"
        raise ScenarioError(f"{found}, expected {expected}")

    def take(self, *marks: str) -> str | None:
        if self.here.kind == "mark" and self.here.text in marks:
            self.place += 1
            return self.tokens[self.place - 1].text
        return None

    def need(self, mark: str) -> None:
        if self.take(mark) is None:
            self.refuse(f"{mark!r}")

    def clause(self, part: _Part) -> Clause:
        if _is_clause(part):
            return part  # type: ignore[return-value]  # just asked
        what = part.name if isinstance(part, Parameter) else "that"
        return self.refuse(f"a comparison: {what} alone is neither true nor false")

    def operand(self, part: _Part) -> Operand:
        if _is_clause(part):
            self.refuse("a parameter, a number or a text: something true or false cannot be compared here")
        return part  # type: ignore[return-value]  # just asked

    def disjunction(self, depth: int) -> _Part:
        if depth > _DEEPEST:
            self.refuse(f"at most {_DEEPEST} brackets inside each other")
        first = self.conjunction(depth)
        if self.here.text not in ("|", "||"):
            return first
        parts = [self.clause(first)]
        while self.take("|", "||"):
            parts.append(self.clause(self.conjunction(depth)))
        return either(parts)

    def conjunction(self, depth: int) -> _Part:
        first = self.negation(depth)
        if self.here.text not in ("&", "&&"):
            return first
        parts = [self.clause(first)]
        while self.take("&", "&&"):
            parts.append(self.clause(self.negation(depth)))
        return both(parts)

    def negation(self, depth: int) -> _Part:
        if depth > _DEEPEST:
            self.refuse(f"at most {_DEEPEST} negations inside each other")
        if self.take("!"):
            return Neither(self.clause(self.negation(depth + 1)))
        return self.comparison(depth)

    def comparison(self, depth: int) -> _Part:
        left = self.sum(depth)
        sign = self.take(*SIGNS)
        if sign is None:
            return left
        right = self.sum(depth)
        # R compares texts letter by letter, in the order of the reader's language: refused, see matching.
        return compared(self.beside(right, left), sign, self.beside(left, right), ranked=False)

    def beside(self, other: _Part, part: _Part) -> Operand:
        """One side of a comparison; TRUE beside a parameter of texts is the text "TRUE", as R has it."""
        if isinstance(part, Certain) and isinstance(other, Choice):
            return Written("TRUE" if part.answer else "FALSE")
        return self.operand(part)

    def sum(self, depth: int) -> _Part:
        left = self.product(depth)
        while sign := self.take("+", "-"):
            left = Operation(sign, (term(self.operand(left)), term(self.operand(self.product(depth)))))
        return left

    def product(self, depth: int) -> _Part:
        left = self.special(depth)
        while sign := self.take("*", "/"):
            left = Operation(sign, (term(self.operand(left)), term(self.operand(self.special(depth)))))
        return left

    def special(self, depth: int) -> _Part:
        """%in% and %%, which bind tighter than * in R."""
        left = self.signed(depth)
        while sign := self.take("%in%", "%%"):
            if sign == "%in%":
                left = self.membership(self.operand(left))
            else:
                left = Operation("%", (term(self.operand(left)), term(self.operand(self.signed(depth)))))
        return left

    def signed(self, depth: int) -> _Part:
        if depth > _DEEPEST:
            self.refuse(f"at most {_DEEPEST} signs inside each other")
        sign = self.take("-", "+")
        if sign is None:
            return self.atom(depth)
        if self.here.kind == "number":
            number = self.atom(depth)
            return Written(sign.replace("+", "") + number.text) if isinstance(number, Written) else number
        inner = term(self.operand(self.signed(depth + 1)))
        return inner if sign == "+" else Operation("-", (Constant(0.0), inner))

    def membership(self, left: Operand) -> Clause:
        if not isinstance(left, Parameter):
            self.refuse("the name of a parameter before %in%")
        listed = self.here.kind == "name" and self.here.text == "c"
        if listed:
            self.place += 1
            self.need("(")
        if listed or self.take("("):
            values = [self.literal()]
            while self.take(","):
                values.append(self.literal())
            self.need(")")
        else:
            values = [self.literal()]
        return among(left, values)

    def literal(self) -> str:
        sign = self.take("-") or ""
        token = self.here
        if token.kind == "name" and token.text in ("TRUE", "FALSE") and not sign:
            self.place += 1
            return token.text
        if token.kind not in ("text", "number") or (sign and token.kind == "text"):
            self.refuse("a text in quotation marks or a number")
        self.place += 1
        return sign + (_unquoted(token.text) if token.kind == "text" else token.text.removesuffix("L"))

    def atom(self, depth: int) -> _Part:
        token = self.here
        if token.kind == "mark" and token.text == "(":
            self.place += 1
            inner = self.disjunction(depth + 1)
            self.need(")")
            return inner
        if token.kind in ("end", "mark"):
            self.refuse("a parameter, a number, a text or a bracket")
        self.place += 1
        if token.kind == "text":
            return Written(_unquoted(token.text), quoted=True)
        if token.kind == "number":
            return Written(token.text.removesuffix("L"))
        if self.take("("):
            return self.call(token.text, depth)
        name = token.text.strip("`")
        if name in self.parameters:
            return self.parameters[name]
        if name in _CERTAIN:
            return Certain(_CERTAIN[name])
        raise ScenarioError(f"found the name {name}, which is no parameter of this file; is it declared, and spelt so?")

    def call(self, name: str, depth: int) -> _Part:
        if name != "as.numeric" and name not in ARITY:
            raise ScenarioError(f"found {name}(...), which captime does not understand; it knows {_KNOWN}")
        terms = [term(self.operand(self.disjunction(depth + 1)))]
        while self.take(","):
            terms.append(term(self.operand(self.disjunction(depth + 1))))
        self.need(")")
        fewest, most = ARITY.get(name, (1, 1))
        if not fewest <= len(terms) <= most:
            raise ScenarioError(f"{name} has {len(terms)} arguments, expected {fewest}{' or more' if most > 1 else ''}")
        return terms[0] if name == "as.numeric" else Operation(name, tuple(terms))


def _is_clause(part: _Part) -> bool:
    return hasattr(part, "truth")


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])


# irace's parameters.txt.
#
#    name "switch" type (domain) [ | condition ]      type: c, o, i, r, or with ,log behind i and r
#    [forbidden]                                      from here on an R expression per line
#    [global]                                         from here on settings; digits is the one that matters
#
# A switch is glued to the value as it stands: its trailing blank makes two words of them. There are no defaults; the
# middle of a range and the first value of a list stand for them. A domain that depends on other parameters is
# refused.

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
