"""One call from wishes to result, without a program: on a recorded table, or on a space where something answers.

`simulate` runs a procedure on recorded runtimes. `simulate_on_space` lets the pool grow from a parameter space, with a
target that answers for every point of it (`Learnt` from a table, or `MadeUp`) or has a table's rows only (`Rows`).
"""

from captime.simulation.learnt import Learnt, MadeUp, Target
from captime.simulation.on_space import simulate_on_space
from captime.simulation.on_table import simulate
from captime.simulation.result import Pooled, Simulation, settings_of_list
from captime.simulation.rows import RowProposer, Rows, settings_of_rows

__all__ = [
    "Learnt",
    "MadeUp",
    "Pooled",
    "RowProposer",
    "Rows",
    "Simulation",
    "Target",
    "settings_of_list",
    "settings_of_rows",
    "simulate",
    "simulate_on_space",
]
