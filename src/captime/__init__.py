"""Which configuration of my program is worth most to me, and how sure can I be?

The names below are the library; everything else may move.
"""

from captime.campaign import CampaignResult
from captime.campaign.ask_tell import AskTell
from captime.certificate import Certificate
from captime.errors import CaptimeError
from captime.library import configure
from captime.procedures import PROCEDURES, Problem, Procedure
from captime.simulation import Simulation, simulate
from captime.sources import RuntimeTable, read_table
from captime.utilities import UTILITIES, Utility, from_callable, parse_utility, survival

__version__ = "0.1.0"

__all__ = [
    "PROCEDURES",
    "UTILITIES",
    "AskTell",
    "CampaignResult",
    "CaptimeError",
    "Certificate",
    "Problem",
    "Procedure",
    "RuntimeTable",
    "Simulation",
    "Utility",
    "__version__",
    "configure",
    "from_callable",
    "parse_utility",
    "read_table",
    "simulate",
    "survival",
]
