"""A look at everything a campaign depends on before hours are spent: `captime doctor`.

Each check is a function that gives findings; `examine` asks them all. Unlike the rest of `scenario`, this runs the
program: a few short runs, supervised exactly as those of a campaign are.
"""

from captime.scenario.checkup.checks import Checkup, examine
from captime.scenario.checkup.running import Finding

__all__ = ["Checkup", "Finding", "examine"]
