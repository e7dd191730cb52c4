"""Methods of other authors, to compare with. One file per idea; captime finds them by their entry points.

To add one: a function in a file, a constant here, and a line in this package's pyproject.toml. What each promises
stands beside it, in words; none of them promises anything about utility.
"""

from captime.procedures.baselines import BASELINES, Baseline
from captime_research.baselines.ac_band import ac_band
from captime_research.baselines.caps import caps_and_runs, impatient_caps_and_runs
from captime_research.baselines.halving import hyperband, successive_halving
from captime_research.baselines.leaps import leaps_and_bounds
from captime_research.baselines.procrastination import spc, structured_procrastination
from captime_research.baselines.search import genetic_search, local_search

_RUNTIME = (
    "with probability 1 - zeta its mean runtime, cut at a captime that few instances exceed, is within a factor "
    "1 + epsilon of the smallest"
)


AC_BAND = Baseline(
    ac_band,
    "with probability 1 - zeta one of the best alpha share is among the configurations drawn; the winner of the "
    "races among these is likely a good one",
    "Brandt, Schede, Haddenhorst, Bengs, Hüllermeier, Tierney: AC-Band (AAAI 2023)",
)
CAPS_AND_RUNS = Baseline(
    caps_and_runs, _RUNTIME, "Weisz, György, Szepesvári: CapsAndRuns (ICML 2019), with the improved constants"
)
GGA_STYLE = Baseline(
    genetic_search, "none", "in the manner of Ansótegui, Sellmann, Tierney: GGA (CP 2009), much simplified"
)
HYPERBAND = Baseline(
    hyperband, "none for runtimes and utilities", "Li, Jamieson, DeSalvo, Rostamizadeh, Talwalkar: Hyperband (2018)"
)
IMPATIENT_CAPS_AND_RUNS = Baseline(
    impatient_caps_and_runs,
    _RUNTIME + " among all configurations but the best `pool` share",
    "Weisz, György, Lin, Graham, Leyton-Brown, Szepesvári, Lucier: ImpatientCapsAndRuns (NeurIPS 2020)",
)
LEAPS_AND_BOUNDS = Baseline(
    leaps_and_bounds, _RUNTIME, "Weisz, György, Szepesvári: LeapsAndBounds (ICML 2018), with the later correction"
)
PARAMILS_STYLE = Baseline(
    local_search, "none", "in the manner of Hutter, Hoos, Leyton-Brown, Stützle: ParamILS (JAIR 2009), simplified"
)
SPC = Baseline(
    spc, _RUNTIME + ", at any time", "Kleinberg, Leyton-Brown, Lucier, Graham: SP with Confidence (NeurIPS 2019)"
)
STRUCTURED_PROCRASTINATION = Baseline(
    structured_procrastination,
    _RUNTIME,
    "Kleinberg, Leyton-Brown, Lucier: Efficiency through Procrastination (IJCAI 2017)",
)
SUCCESSIVE_HALVING = Baseline(
    successive_halving, "none for runtimes and utilities", "Jamieson, Talwalkar: Successive Halving (AISTATS 2016)"
)

MEMBERS = {
    "ac-band": AC_BAND,
    "caps-and-runs": CAPS_AND_RUNS,
    "gga-style": GGA_STYLE,
    "hyperband": HYPERBAND,
    "impatient-caps-and-runs": IMPATIENT_CAPS_AND_RUNS,
    "leaps-and-bounds": LEAPS_AND_BOUNDS,
    "paramils-style": PARAMILS_STYLE,
    "spc": SPC,
    "structured-procrastination": STRUCTURED_PROCRASTINATION,
    "successive-halving": SUCCESSIVE_HALVING,
}


def register() -> None:
    """Add the members to captime's register, as loading this package's entry points does."""
    BASELINES.update(MEMBERS)
