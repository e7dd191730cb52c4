"""A utility in a dozen numbers: its worth at familiar times, and when it has fallen to familiar worths."""

from dataclasses import dataclass

import numpy as np

from captime.utilities.protocol import Utility

_SHORT = (1e-3, 1e-2, 1e-1)
_USUAL = (1.0, 10.0, 60.0, 600.0, 3600.0, 86400.0)
_LONG = (864000.0, 8640000.0)
_WORTHS = (0.9, 0.5, 0.1)


@dataclass(frozen=True, slots=True)
class Summary:
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


def summarise(utility: Utility) -> Summary:
    """Return the table of a utility; thousandths of a second and weeks appear only if it changes at that scale."""
    fallen = utility.inverse(np.array(_WORTHS))
    half = float(fallen[_WORTHS.index(0.5)])
    shown = (*(_SHORT if half < 1.0 else ()), *_USUAL, *(_LONG if half > 86400.0 else ()))
    worth = utility(np.array(shown))
    return Summary(
        text=str(utility),
        worth_at=tuple(zip(shown, worth.tolist(), strict=True)),
        time_at=tuple(zip(_WORTHS, fallen.tolist(), strict=True)),
        zero_at=float(utility.zero_at),
    )
