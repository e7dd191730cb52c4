"""The expressions of new-style PCS files: `p == a && q in {b, c} || r > 0.5`, also used in scenario files.

`&&` binds tighter than `||`. Beyond the published grammar, brackets, `!`, `<=`, `>=`, texts in quotation marks and
arithmetic are understood, because files use them. A recursive descent over one pass of tokens; nothing is evaluated.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from captime.errors import ScenarioError
from captime.spaces.clauses import ARITHMETIC, ARITY, SIGNS, Clause, Constant, Neither, Operation, both, either
from captime.spaces.matching import Operand, Written, among, compared, term
from captime.spaces.parameters import Choice, Parameter
from captime.spaces.values import number_in

# Deeper than any expression in use, shallow enough for Python's stack.
_DEEPEST = 40
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<quoted>"(?:[^"\\]|\\.)*"|'[^']*')
      | (?P<mark>&&|\|\||==|!=|<=|>=|[{}(),<>=!])
      | (?P<word>[^\s{}(),|="'!<>&]+(?:&(?!&)[^\s{}(),|="'!<>&]*)*)
    )""",
    re.VERBOSE,
)
_ARITHMETIC = re.compile(r"([+\-*/%])")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of an expression; `kind` is quoted, mark, word or end, `place` counts characters from 1."""

    kind: str
    text: str
    place: int


def read_clause(text: str, parameters: Mapping[str, Parameter]) -> Clause:
    """The clause that a whole text says about these parameters."""
    reader = _PcsReader(_tokens(text, parameters), parameters)
    clause = reader.disjunction(0)
    reader.finish()
    return clause


def read_forbidden(text: str, parameters: Mapping[str, Parameter]) -> Clause:
    """The clause of a forbidden combination, without its braces: also `p=a, q=b`, where commas mean and."""
    reader = _PcsReader(_tokens(text, parameters), parameters)
    parts = [reader.disjunction(0)]
    while reader.take(","):
        parts.append(reader.disjunction(0))
    reader.finish()
    return both(parts)


def _tokens(text: str, parameters: Mapping[str, Parameter]) -> list[Token]:
    # Names may hold signs (< or & or !): those of this space are known, and are looked for first.
    odd = [re.escape(name) for name in parameters if not re.fullmatch(r"[\w.:@$;?\\/*+%-]+", name)]
    named = re.compile(rf"\s*({'|'.join(sorted(odd, key=len, reverse=True))})(?=[\s{{}}(),|=]|$)") if odd else None
    tokens: list[Token] = []
    place, end = 0, len(text.rstrip())
    while place < end:
        found = named.match(text, place) if named is not None else None
        if found is not None:
            tokens.append(Token("word", found.group(1), found.start(1) + 1))
            place = found.end()
            continue
        found = _TOKEN.match(text, place)
        if found is None:
            rest = text[place:].strip()[:12]
            raise ScenarioError(
                f"found {rest!r}, expected a name, a value, a bracket or one of && || in {' '.join(SIGNS)}"
            )
        kind = found.lastgroup or ""
        tokens.append(Token(kind, found.group(kind), found.start(kind) + 1))
        place = found.end()
    return [*tokens, Token("end", "", end + 1)]


def _pieces(token: Token, parameters: Mapping[str, Parameter]) -> list[Token]:
    """`a+b` is three tokens if that is no name but its parts are known; names with hyphens stay whole."""
    if token.kind != "word" or token.text in parameters or number_in(token.text) is not None:
        return [token]
    parts = [part for part in _ARITHMETIC.split(token.text) if part]
    known = all(part in ARITHMETIC or part in parameters or number_in(part) is not None for part in parts)
    if not known or not any(part in parameters for part in parts):
        return [token]
    return [Token("word", part, token.place) for part in parts]


class _PcsReader:
    """A place in a list of tokens, moving right."""

    def __init__(self, tokens: list[Token], parameters: Mapping[str, Parameter]) -> None:
        self.tokens = tokens
        self.parameters = parameters
        self.place = 0

    @property
    def here(self) -> Token:
        return self.tokens[self.place]

    def expected(self, what: str) -> ScenarioError:
        found = f"found {self.here.text!r}" if self.here.kind != "end" else "the expression ends"
        return ScenarioError(f"{found} at character {self.here.place} of the expression, expected {what}")

    def take(self, mark: str) -> bool:
        if self.here.kind == "mark" and self.here.text == mark:
            self.place += 1
            return True
        return False

    def need(self, mark: str) -> None:
        if not self.take(mark):
            raise self.expected(f"{mark!r}")

    def word(self, *choices: str) -> str | None:
        if self.here.kind == "word" and self.here.text in choices:
            self.place += 1
            return self.tokens[self.place - 1].text
        return None

    def cut(self) -> None:
        """Cut `a+b` here where a number may stand; where a value may stand, `x-1` is left whole."""
        self.tokens[self.place : self.place + 1] = _pieces(self.here, self.parameters)

    def finish(self) -> None:
        if self.here.kind != "end":
            raise self.expected("&&, || or the end")

    def disjunction(self, depth: int) -> Clause:
        if depth > _DEEPEST:
            raise self.expected(f"at most {_DEEPEST} brackets inside each other")
        parts = [self.conjunction(depth)]
        while self.take("||"):
            parts.append(self.conjunction(depth))
        return either(parts)

    def conjunction(self, depth: int) -> Clause:
        parts = [self.test(depth)]
        while self.take("&&"):
            parts.append(self.test(depth))
        return both(parts)

    def test(self, depth: int) -> Clause:
        if self.take("!"):
            if depth > _DEEPEST:
                raise self.expected(f"at most {_DEEPEST} negations inside each other")
            return Neither(self.test(depth + 1))
        start = self.place
        if self.take("("):
            # A bracket opens a clause or arithmetic; which of the two shows at its end.
            clause = self.bracketed_clause(depth)
            if clause is not None:
                return clause
            self.place = start
        return self.comparison(depth)

    def bracketed_clause(self, depth: int) -> Clause | None:
        if not self._holds_a_sign():
            return None
        clause = self.disjunction(depth + 1)
        self.need(")")
        return clause

    def _holds_a_sign(self) -> bool:
        """Whether a comparison stands between here and the bracket that closes."""
        open_brackets = 1
        for token in self.tokens[self.place :]:
            if token.kind == "mark" and token.text in "()":
                open_brackets += 1 if token.text == "(" else -1
                if open_brackets == 0:
                    return False
            elif (token.kind == "mark" and (token.text in SIGNS or token.text == "=")) or token.text == "in":
                return True
        return False

    def comparison(self, depth: int) -> Clause:
        left = self.sum(depth)
        if self.word("in"):
            return self.membership(left)
        sign = next((sign for sign in (*SIGNS, "=") if self.take(sign)), None)
        if sign is None:
            raise self.expected(f"one of in {' '.join(SIGNS)}")
        return compared(left, "==" if sign == "=" else sign, self.other_side(left, depth))

    def other_side(self, left: Operand, depth: int) -> Operand:
        """A word that is a value of the parameter on the left is that value, even if a parameter is called so too."""
        if isinstance(left, Choice) and self.here.kind == "word" and left.code(self.here.text) is not None:
            self.place += 1
            return Written(self.tokens[self.place - 1].text)
        return self.sum(depth)

    def membership(self, left: Operand) -> Clause:
        if not isinstance(left, Parameter):
            raise self.expected("the name of a parameter before 'in'")
        self.need("{")
        values: list[str] = []
        while not self.take("}"):
            if values and not self.take(","):
                raise self.expected("a comma or '}'")
            values.append(self.value())
        if not values:
            raise self.expected("at least one value between the braces")
        return among(left, values)

    def value(self) -> str:
        token = self.here
        if token.kind not in ("word", "quoted"):
            raise self.expected("a value")
        self.place += 1
        text = token.text if token.kind == "word" else _unquoted(token.text)
        # A value such as `a b` is written without quotation marks in some files.
        while token.kind == "word" and self.here.kind == "word":
            text += f" {self.here.text}"
            self.place += 1
        return text

    def sign(self, *signs: str) -> str | None:
        self.cut()
        return self.word(*signs)

    def sum(self, depth: int) -> Operand:
        left = self.product(depth)
        while sign := self.sign("+", "-"):
            left = Operation(sign, (term(left), term(self.product(depth))))
        return left

    def product(self, depth: int) -> Operand:
        left = self.factor(depth)
        while sign := self.sign("*", "/", "%"):
            left = Operation(sign, (term(left), term(self.factor(depth))))
        return left

    def factor(self, depth: int) -> Operand:
        if depth > _DEEPEST:
            raise self.expected(f"at most {_DEEPEST} brackets inside each other")
        if self.take("("):
            inner = self.sum(depth + 1)
            self.need(")")
            return inner
        if self.sign("-"):
            return Operation("-", (Constant(0.0), term(self.factor(depth + 1))))
        token = self.here
        if token.kind not in ("word", "quoted"):
            raise self.expected("a parameter, a value or a bracket")
        self.place += 1
        if token.kind == "quoted":
            return Written(_unquoted(token.text), quoted=True)
        if token.text in ARITY and self.take("("):
            return self.call(token.text, depth)
        return self.parameters.get(token.text) or Written(token.text)

    def call(self, name: str, depth: int) -> Operand:
        terms = [term(self.sum(depth + 1))]
        while self.take(","):
            terms.append(term(self.sum(depth + 1)))
        self.need(")")
        fewest, most = ARITY[name]
        if not fewest <= len(terms) <= most:
            raise self.expected(
                f"{fewest} {'or more ' if most > fewest else ''}arguments of {name}, found {len(terms)}"
            )
        return Operation(name, tuple(terms))


def _unquoted(text: str) -> str:
    inner = text[1:-1]
    return re.sub(r"\\(.)", r"\1", inner) if text.startswith('"') else inner
