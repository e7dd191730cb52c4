"""The family of procedures: they decide what to learn next. One file per member; this door is the register.

A member is a callable that takes a `Problem` and keyword options and gives a `Procedure`: the signature is the schema
of its options.
"""

from collections.abc import Callable

from captime.certificate import Population
from captime.procedures.coup import Coup
from captime.procedures.coup_plus import CoupPlus
from captime.procedures.coup_plus_growing import GrowingCoupPlus
from captime.procedures.fixed_captimes import FixedCaptimes
from captime.procedures.fixed_set import FixedSetRace
from captime.procedures.naive import Naive, oracle
from captime.procedures.oup import oup
from captime.procedures.pool import Pool
from captime.procedures.problem import Problem
from captime.procedures.protocol import Procedure
from captime.procedures.race import Race
from captime.procedures.set_pool import FixedSetPool
from captime.procedures.up import up
from captime.procedures.verification import Verification

PROCEDURES: dict[str, Callable[..., Procedure]] = {
    "coup": Coup,
    "coup-plus": CoupPlus,
    "coup-plus-pool": GrowingCoupPlus,
    "fixed-captimes": FixedCaptimes,
    "naive": Naive,
    "oracle": oracle,
    "oup": oup,
    "pool": Pool,
    "race": Race,
    "up": up,
    "verification": Verification,
}
ON_A_SET: dict[str, Callable[..., Procedure]] = {"pool": FixedSetPool, "race": FixedSetRace}
"""Those that make a claim about exactly the instances of a set, by the same names."""

REGISTERS = {Population.DRAWN: PROCEDURES, Population.THESE: ON_A_SET}

__all__ = ["ON_A_SET", "PROCEDURES", "REGISTERS", "Problem", "Procedure"]
