"""Which configuration of my program is worth most to me, and how sure can I be?

The names below are the library; everything else may move.
"""

import sys
from pathlib import PurePath

try:
    from captime.campaign import CampaignResult
    from captime.campaign.ask_tell import AskTell
    from captime.certificate import Certificate
    from captime.comparison import Comparison, Difference, GateVerdict, compare
    from captime.errors import CaptimeError
    from captime.library import configure, validate
    from captime.plugins import load_plugins
    from captime.procedures import PROCEDURES, Problem, Procedure
    from captime.report.shown_result import Result
    from captime.simulation import Simulation, simulate
    from captime.sources import RuntimeTable, read_table
    from captime.utilities import UTILITIES, Utility, from_callable, parse_utility, survival
except KeyboardInterrupt:
    # Loading takes a while. Whoever stops one of our commands by then wants an end, and no traceback; programs that use
    # the library decide themselves. Python calls itself "-m" while it looks for what is to be run.
    if sys.argv and (sys.argv[0] == "-m" or PurePath(sys.argv[0]).stem == "captime"):
        sys.exit(130)
    raise

__version__ = "0.1.0"

PLUGIN_PROBLEMS = load_plugins()
"""Members of other packages that could not be added, a sentence each; the command line tells them."""

__all__ = [
    "PROCEDURES",
    "UTILITIES",
    "AskTell",
    "CampaignResult",
    "CaptimeError",
    "Certificate",
    "Comparison",
    "Difference",
    "GateVerdict",
    "Problem",
    "Procedure",
    "Result",
    "RuntimeTable",
    "Simulation",
    "Utility",
    "__version__",
    "compare",
    "configure",
    "from_callable",
    "parse_utility",
    "read_table",
    "simulate",
    "survival",
    "validate",
]
