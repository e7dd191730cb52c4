"""A utility, a procedure and a space format that captime does not have; found by their entry points."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray
from captime.errors import ScenarioError
from captime.procedures import PROCEDURES, Problem, Procedure
from captime.spaces import Space
from captime.spaces.formats import Format
from captime.spaces.formats.section import read_section
from captime.utilities.formula import Formula, Seconds


@dataclass(frozen=True, slots=True)
class Weibull(Formula):
    """exp(-(t / scale) ** shape): shape 1 is the exponential, a larger shape hesitates first and then falls."""

    scale: Seconds
    shape: float

    name: ClassVar[str] = "weibull"
    example: ClassVar[str] = "weibull(60, 2)"

    def _worth(self, t: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-((t / self.scale) ** self.shape)))

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.scale * (-np.log(x)) ** (1.0 / self.shape))


def sharper_race(problem: Problem) -> Procedure:
    """The race, towards half the epsilon asked for."""
    return PROCEDURES["race"](replace(problem, epsilon=problem.epsilon / 2.0))


def _read(text: str, file: str) -> Space:
    """Read lines such as `decay 0.5 0.9 0.75`: a name, the ends of a range, and the default."""
    section: dict[str, object] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        try:
            name, low, high, default = words[0], *map(float, words[1:])
        except (IndexError, ValueError):
            expected = "a name and three numbers, such as decay 0.5 0.9 0.75"
            raise ScenarioError(f"{file}, line {number}: {line!r} is no parameter; expected {expected}") from None
        section[name] = {"type": "float", "low": low, "high": high, "default": default}
    if not section:
        raise ScenarioError(f"{file}: there is no parameter; write a line such as decay 0.5 0.9 0.75")
    return read_section({"parameters": section}, file)


LINES = Format("a line per parameter: name, low, high, default", (".lines",), _read, None)
