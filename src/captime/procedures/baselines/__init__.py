"""The family of baselines: procedures of others, to compare with. One file per idea; this door is the register.

They promise nothing about utility: most look for the smallest mean runtime, some promise nothing at all. What each does
promise stands beside it, in words; a certificate of epsilon 1 ("nothing is certified") is all they can give here.
"""

from collections.abc import Callable
from dataclasses import dataclass

from captime.procedures.baselines.ac_band import ac_band
from captime.procedures.baselines.bench import Bench, Guess, Guesses, NoMoreInstances
from captime.procedures.baselines.caps import caps_and_runs, impatient_caps_and_runs
from captime.procedures.baselines.halving import hyperband, successive_halving
from captime.procedures.baselines.leaps import leaps_and_bounds
from captime.procedures.baselines.procrastination import spc, structured_procrastination
from captime.procedures.baselines.search import genetic_search, local_search

_RUNTIME = (
    "with probability 1 - zeta its mean runtime, cut at a captime that few instances exceed, is within a factor "
    "1 + epsilon of the smallest"
)


@dataclass(frozen=True, slots=True)
class Baseline:
    """A procedure of others.

    Attributes:
        search: `search(bench, option=value, ...)` makes runs and yields whom it would recommend.
        guarantee: What its authors prove about its answer, in words; never anything about utility.
        reference: Where it is described.
    """

    search: Callable[..., Guesses]
    guarantee: str
    reference: str


BASELINES: dict[str, Baseline] = {
    "ac-band": Baseline(
        ac_band,
        "with probability 1 - zeta one of the best alpha share is among the configurations drawn; the winner of the "
        "races among these is likely a good one",
        "Brandt, Schede, Haddenhorst, Bengs, Hüllermeier, Tierney: AC-Band (AAAI 2023)",
    ),
    "caps-and-runs": Baseline(
        caps_and_runs, _RUNTIME, "Weisz, György, Szepesvári: CapsAndRuns (ICML 2019), with the improved constants"
    ),
    "gga-style": Baseline(
        genetic_search, "none", "in the manner of Ansótegui, Sellmann, Tierney: GGA (CP 2009), much simplified"
    ),
    "hyperband": Baseline(
        hyperband, "none for runtimes and utilities", "Li, Jamieson, DeSalvo, Rostamizadeh, Talwalkar: Hyperband (2018)"
    ),
    "impatient-caps-and-runs": Baseline(
        impatient_caps_and_runs,
        _RUNTIME + " among all configurations but the best `pool` share",
        "Weisz, György, Lin, Graham, Leyton-Brown, Szepesvári, Lucier: ImpatientCapsAndRuns (NeurIPS 2020)",
    ),
    "leaps-and-bounds": Baseline(
        leaps_and_bounds, _RUNTIME, "Weisz, György, Szepesvári: LeapsAndBounds (ICML 2018), with the later correction"
    ),
    "paramils-style": Baseline(
        local_search, "none", "in the manner of Hutter, Hoos, Leyton-Brown, Stützle: ParamILS (JAIR 2009), simplified"
    ),
    "spc": Baseline(
        spc, _RUNTIME + ", at any time", "Kleinberg, Leyton-Brown, Lucier, Graham: SP with Confidence (NeurIPS 2019)"
    ),
    "structured-procrastination": Baseline(
        structured_procrastination,
        _RUNTIME,
        "Kleinberg, Leyton-Brown, Lucier: Efficiency through Procrastination (IJCAI 2017)",
    ),
    "successive-halving": Baseline(
        successive_halving, "none for runtimes and utilities", "Jamieson, Talwalkar: Successive Halving (AISTATS 2016)"
    ),
}

__all__ = ["BASELINES", "Baseline", "Bench", "Guess", "Guesses", "NoMoreInstances"]
