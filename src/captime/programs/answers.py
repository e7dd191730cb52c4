"""Answers compared: with what is known, and with each other. Two that contradict each other end all claims.

What cannot be compared is not a contradiction: a word against a number, or two different words other than "satisfiable"
and "unsatisfiable". Which of two contradicting answers is right is not known here.
"""

import math
import re
from dataclasses import dataclass

_SAT = {"sat", "satisfiable", "s satisfiable", "feasible", "optimum found", "s optimum found"}
_UNSAT = {"unsat", "unsatisfiable", "s unsatisfiable", "infeasible"}
_NOTHING = {"", "?", "unknown", "s unknown", "unk", "none", "na", "n/a", "indeterminate"}
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

TOLERANCE = 1e-6
"""By which share two optimal values may differ and still be the same."""


def meaning(answer: bytes) -> str | float | None:
    """Return what an answer says: "sat", "unsat", a number, another text, or None if it says nothing.

    >>> meaning(b"s SATISFIABLE"), meaning(b"42.0"), meaning(b"unknown")
    ('sat', 42.0, None)
    """
    text = " ".join(answer.decode("utf-8", "replace").split()).lower()
    if text in _NOTHING:
        return None
    if text in _SAT or text in _UNSAT:
        return "sat" if text in _SAT else "unsat"
    return float(text) if _NUMBER.fullmatch(text) else text


def agrees(answer: bytes, known: bytes, tolerance: float = TOLERANCE) -> bool:
    """Return whether an answer is the known one; a known answer that says nothing agrees with everything."""
    found, expected = meaning(answer), meaning(known)
    if expected is None:
        return True
    if isinstance(found, float) and isinstance(expected, float):
        return _close(found, expected, tolerance)
    return found == expected


def contradicts(one: bytes, other: bytes, tolerance: float = TOLERANCE) -> bool:
    """Return whether two answers cannot both be right."""
    first, second = meaning(one), meaning(other)
    if isinstance(first, float) and isinstance(second, float):
        return not _close(first, second, tolerance)
    return {first, second} == {"sat", "unsat"}


def _close(one: float, other: float, tolerance: float) -> bool:
    return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two configurations that contradict each other on one instance.

    Attributes:
        instance: The instance.
        first: The configuration that answered first, by index.
        first_answer: What it said.
        second: The other one.
        second_answer: What that said.
    """

    instance: str
    first: int
    first_answer: bytes
    second: int
    second_answer: bytes

    def __str__(self) -> str:
        """Return a sentence without names of configurations, which are known elsewhere."""
        said = [repr(answer.decode("utf-8", "replace")) for answer in (self.first_answer, self.second_answer)]
        return (
            f"on instance {self.instance!r} configuration {self.first} answered {said[0]} and configuration "
            f"{self.second} answered {said[1]}; both cannot be right"
        )


class AnswerBook:
    """Remembers one answer per instance, and notices the first that contradicts it.

    Args:
        tolerance: By which share numbers may differ.
    """

    def __init__(self, tolerance: float = TOLERANCE) -> None:
        self._tolerance = tolerance
        self._said: dict[str, tuple[int, bytes]] = {}

    def note(self, instance: str, config: int, answer: bytes | None) -> Conflict | None:
        """Take in an answer that was counted as right; None if it contradicts nothing heard before."""
        if answer is None or meaning(answer) is None:
            return None
        first, said = self._said.setdefault(instance, (config, answer))
        if contradicts(said, answer, self._tolerance):
            return Conflict(instance, first, said, config, answer)
        return None
