"""The family of bounds: from sums (or samples) of scores to an interval for their mean.

One file per member; this door says what a member looks like and who is a member. `Declared.needs` says what a member is
computed from and so which of the protocols it fits; `check_fit` refuses a bound that a procedure may not use.
"""

from typing import Any

from captime.bounds.binned_mixture import BinnedMixture
from captime.bounds.dkw import Dkw
from captime.bounds.fan import Fan
from captime.bounds.hoeffding import Hoeffding, hoeffding_radius
from captime.bounds.kl import Kl, KlSequence
from captime.bounds.mixture import Mixture
from captime.bounds.paired_mixture import PairedMixture
from captime.bounds.protocol import Bound, Declared, MomentBound, Moments, SampleBound, Use, check_fit, misfits
from captime.bounds.regret import RegretBetting

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
