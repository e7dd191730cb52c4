"""Which configuration of my program is worth most to me, and how sure can I be?

The names below are the library; everything else may move.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from captime.campaign import CampaignResult
    from captime.campaign.ask_tell import AskTell
    from captime.certificate import Certificate
    from captime.comparison import Comparison, Difference, GateVerdict, compare
    from captime.errors import CaptimeError
    from captime.library import configure, validate
    from captime.procedures import PROCEDURES, Problem, Procedure
    from captime.report.shown_result import Result
    from captime.simulation import Simulation, simulate
    from captime.sources import RuntimeTable, read_table
    from captime.utilities import UTILITIES, Utility, from_callable, parse_utility, survival

__version__ = "0.2.0"

_MODULES = {
    "campaign": ("CampaignResult",),
    "campaign.ask_tell": ("AskTell",),
    "certificate": ("Certificate",),
    "comparison": ("Comparison", "Difference", "GateVerdict", "compare"),
    "errors": ("CaptimeError",),
    "library": ("configure", "validate"),
    "procedures": ("PROCEDURES", "Problem", "Procedure"),
    "report.shown_result": ("Result",),
    "simulation": ("Simulation", "simulate"),
    "sources": ("RuntimeTable", "read_table"),
    "utilities": ("UTILITIES", "Utility", "from_callable", "parse_utility", "survival"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

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


def __getattr__(name: str) -> object:
    """Import a name of the library when it is first used, after the members that plugins add."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'captime' has no attribute {name!r}")
    import_module("captime.plugins").load_once()
    value: object = getattr(import_module(f"captime.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
