"""The family of bounds: from sums (or samples) of scores to an interval for their mean.

This door says what a member looks like and who is a member. `Declared.needs` says what a member is
computed from and so which of the protocols it fits; `check_fit` refuses a bound that a procedure may not use.
"""

from typing import Any

from captime.bounds.betting import BinnedMixture, PairedMixture
from captime.bounds.dkw import Dkw
from captime.bounds.from_sums import Fan, Hoeffding, Kl, KlSequence, RegretBetting, hoeffding_radius
from captime.bounds.mixture import Mixture
from captime.bounds.protocol import Bound, Declared, MomentBound, Moments, SampleBound, Use, check_fit, misfits

# Members of different `needs` are called differently, so no one protocol has them all; `Declared` is what they share.
BOUNDS: dict[str, type[Any]] = {
    "hoeffding": Hoeffding,
    "kl": Kl,
    "kl-sequence": KlSequence,
    "mixture": Mixture,
    "mixture-regret": RegretBetting,
    "mixture-moments": Fan,
    "mixture-bins": BinnedMixture,
    "mixture-pairs": PairedMixture,
    "dkw": Dkw,
}

__all__ = [
    "BOUNDS",
    "Bound",
    "Declared",
    "Hoeffding",
    "Mixture",
    "MomentBound",
    "Moments",
    "SampleBound",
    "Use",
    "check_fit",
    "hoeffding_radius",
    "misfits",
]
