"""The family of bounds: from sums (or samples) of scores to an interval for their mean.

One file per member; this door says what a member looks like and who is a member.
"""

from captime.bounds.hoeffding import Hoeffding, hoeffding_radius
from captime.bounds.protocol import Bound

BOUNDS: dict[str, type[Bound]] = {
    "hoeffding": Hoeffding,
}

__all__ = ["BOUNDS", "Bound", "Hoeffding", "hoeffding_radius"]
