"""From a sentence to a utility.

Each function takes what a sentence says and returns the least committed utility that agrees with it: the
survival function of the deadline distribution of largest entropy (the table in docs/utilities.md says which
is which).
"""

import math
from dataclasses import dataclass

import numpy as np

from captime.errors import UtilityError
from captime.utilities.formula import Utility, shown
from captime.utilities.formulas import Exponential, LogLaplace, Step, Uniform

LITTLE, ALL_WELL = 0.2, 0.98
"""Where every configuration is worth less than the first number or more than the second, they hardly differ under that
utility: another one should be chosen."""


def deadline_at(seconds: float) -> Step:
    """Sentence: "I need it by then; earlier is no better". Full worth before the moment, nothing from it on.

    >>> str(deadline_at(300))
    'step(300)'
    """
    return Step(_amount("the deadline", seconds))


def worthless_after(seconds: float) -> Uniform:
    """Sentence: "worthless after five minutes". Worth drains away evenly until then.

    The sentence gives the last useful moment and says nothing about the time before it: the answer is needed
    at some moment until then, any is as likely as the next. Use `deadline_at` instead if an answer just in
    time is as good as one at once.

    >>> str(worthless_after(300))
    'uniform(300)'
    """
    return Uniform(_amount("the time after which it is worthless", seconds))


def half_after(seconds: float) -> LogLaplace:
    """Sentence: "half as good after a minute". Half the worth is gone then, and nothing is said about an end.

    Twice the time halves what is left, half the time halves what is lost: the paper's log-Laplace with shape
    1.

    >>> str(half_after(60))
    'log-laplace(60, 1)'
    """
    return LogLaplace(_amount("the time after which it is half as good", seconds), 1.0)


def halving_every(seconds: float) -> Exponential:
    """Sentence: "it loses half its worth every minute". The same loss again and again, a half-life.

    >>> round(float(halving_every(60)(180)), 12)
    0.125
    """
    return Exponential(_amount("the time in which it loses half its worth", seconds) / math.log(2.0))


def from_prices(pay_per_hour: float, worth: float) -> Uniform:
    """Sentence: "I pay 2 EUR an hour and an answer is worth 1 EUR". The worth left is 1 - price / worth.

    What is left of the worth after paying for the machine falls evenly; after worth / pay_per_hour hours
    (here half an hour) the answer has cost what it is worth, and a sensible person has stopped.

    >>> str(from_prices(2, 1))
    'uniform(1800)'
    """
    return Uniform(3600.0 * _amount("what an answer is worth", worth) / _amount("the pay per hour", pay_per_hour))


def _amount(what: str, number: float) -> float:
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0.0 < number < math.inf:
        raise UtilityError(f"{what} is {shown(number)}, expected a finite number greater than 0")
    return float(number)


# A utility in a dozen numbers: its worth at familiar times, and when it has fallen to familiar worths.

_SHORT = (1e-3, 1e-2, 1e-1)
_USUAL = (1.0, 10.0, 60.0, 600.0, 3600.0, 86400.0)
_LONG = (864000.0, 8640000.0)
_WORTHS = (0.9, 0.5, 0.1)


@dataclass(frozen=True, slots=True)
class UtilitySummary:
    """The numbers.

    Attributes:
        text: the utility in its textual form.
        worth_at: pairs (seconds, worth), from early to late.
        time_at: pairs (worth, first moment it has fallen so far), from high to low.
        zero_at: from when on it is worth nothing, infinite if never.
    """

    text: str
    worth_at: tuple[tuple[float, float], ...]
    time_at: tuple[tuple[float, float], ...]
    zero_at: float


def summarise(utility: Utility) -> UtilitySummary:
    """Return the table of a utility; thousandths of a second and weeks appear only if it changes at that scale."""
    fallen = utility.inverse(np.array(_WORTHS))
    half = float(fallen[_WORTHS.index(0.5)])
    shown = (*(_SHORT if half < 1.0 else ()), *_USUAL, *(_LONG if half > 86400.0 else ()))
    worth = utility(np.array(shown))
    return UtilitySummary(
        text=str(utility),
        worth_at=tuple(zip(shown, worth.tolist(), strict=True)),
        time_at=tuple(zip(_WORTHS, fallen.tolist(), strict=True)),
        zero_at=float(utility.zero_at),
    )
