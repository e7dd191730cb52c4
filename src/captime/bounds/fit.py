"""Who may use which bound. A bound says what it can do; a procedure says what it will do; here the two are compared."""

from dataclasses import dataclass

from captime.bounds.protocol import Declared
from captime.errors import ScenarioError

_SUPPLIES = {
    "sums": "the sums of the scores",
    "moments": "the sums of the scores and of their squares",
    "samples": "the scores one by one",
    "bins": "counts of rounded scores",
    "pairs": "the scores of two configurations on the same positions",
}


@dataclass(frozen=True, slots=True)
class Use:
    """What a procedure does with a bound.

    Attributes:
        procedure: Its name, for messages.
        supplies: What it computes bounds from, in the words of `Declared.needs`.
        looks_often: It looks at more than one sample size.
        pays_for_looks: Its budget has a share for every sample size, so that a bound need not cover them all at once.
        intervals: Scores may be known as intervals only, and their captimes may depend on what was seen: open runs,
            cut runs made again in an order of the procedure's choice, captimes that differ between positions.
    """

    procedure: str
    supplies: frozenset[str]
    looks_often: bool
    pays_for_looks: bool
    intervals: bool


def misfits(bound: type[Declared], use: Use) -> list[str]:
    """Why this bound would make that procedure's certificates wrong or impossible; empty if nothing speaks against it.

    Each reason is a clause that says what was found and what to do.
    """
    reasons = []
    if bound.needs not in use.supplies:
        held = " and ".join(_SUPPLIES[kind] for kind in sorted(use.supplies))
        reasons.append(
            f"it is computed from {_SUPPLIES.get(bound.needs, bound.needs)}, and the procedure keeps {held}; choose a "
            f"bound that needs {' or '.join(sorted(use.supplies))}"
        )
    if use.looks_often and not use.pays_for_looks and not bound.time_uniform:
        reasons.append(
            "it holds at one sample size only, and the procedure looks at many without paying for each; choose a "
            "time-uniform bound"
        )
    if use.intervals and not bound.monotone:
        reasons.append(
            "it can rise when a score falls, so an open or cut run may not stand in by the end of its interval, and "
            "captimes may not follow the data; choose a monotone bound"
        )
    return reasons


def check_fit(name: str, bound: type[Declared], use: Use) -> None:
    """Refuse an invalid combination of a bound and a procedure, with the reasons.

    Args:
        name: The bound's name in the register.
        bound: The bound.
        use: What the procedure does with it.
    """
    if reasons := misfits(bound, use):
        raise ScenarioError(
            f"the bound {name!r} does not fit the procedure {use.procedure!r}: {'; and '.join(reasons)}"
        )
