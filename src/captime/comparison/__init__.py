"""Two or more commands, no file: which is worth most, and is the new one worse than the old one?"""

from captime.comparison.comparing import Comparison, compare
from captime.comparison.pairs import Difference, Gate, GateVerdict, WorthMore

__all__ = ["Comparison", "Difference", "Gate", "GateVerdict", "WorthMore", "compare"]
