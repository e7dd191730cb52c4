"""One run of CPLEX: `cplex-run/python -I -S solve_cplex.py MODEL NAME=VALUE...` prints the optimum, or what is wrong.

CPLEX has no program of its own in the wheel, so a little Python stands before it; importing it takes some 50 ms of the
time that is measured. Names are those of CPLEX's parameters, such as mip.strategy.probe.
"""

import sys
from importlib import import_module
from pathlib import Path

# What the community edition solves; measure.py makes the links in this folder.
LARGEST = 1000
# CPLEX's status of an integer program that is solved: exactly, or as closely as asked for.
_OPTIMAL = (101, 102)
sys.path.insert(0, str(Path(__file__).parent / "cplex-run" / "lib"))


def main(words: list[str]) -> int:
    """Read the model, set the parameters, solve; 0 if the optimum was found."""
    model, *settings = words
    # By name, because it is found through the path above and is no requirement of ours.
    solver = import_module("cplex").Cplex()
    for quiet in (solver.set_log_stream, solver.set_results_stream, solver.set_warning_stream):
        quiet(None)
    solver.read(model)
    if max(solver.variables.get_num(), solver.linear_constraints.get_num()) > LARGEST:
        print(f"{model}: more than {LARGEST} variables or constraints, too large for the community edition")
        return 3
    for setting in settings:
        name, _, value = setting.partition("=")
        parameter = solver.parameters
        for part in name.split("."):
            parameter = getattr(parameter, part)
        parameter.set(type(parameter.default())(value))
    solver.solve()
    if solver.solution.get_status() not in _OPTIMAL:
        print(f"no optimum: {solver.solution.get_status_string()}")
        return 4
    print(f"optimum {solver.solution.get_objective_value():.9g}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
