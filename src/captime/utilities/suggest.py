"""From a sentence to a utility.

Each function takes what a sentence says and returns the least committed utility that agrees with it: the
survival function of the deadline distribution of largest entropy (the table in docs/utilities.md says which
is which).
"""

import math

from captime.errors import UtilityError
from captime.utilities.checks import shown
from captime.utilities.exponential import Exponential
from captime.utilities.log_laplace import LogLaplace
from captime.utilities.step import Step
from captime.utilities.uniform import Uniform

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
    at some moment until then, any is as likely as the next. Say `deadline_at` instead if an answer just in
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
