"""Solve an integer model with CP-SAT: the function that scenario.toml names.

`pip install ortools` first. Change `read` for models of another kind, such as those your own program builds.
"""

from typing import Any

from ortools.linear_solver.python import model_builder


def read(instance: str) -> Any:
    """Read a model in MPS format."""
    model = model_builder.Model()
    if not model.import_from_mps_file(instance):
        message = f"{instance} is no model in MPS format that OR-Tools reads"
        raise ValueError(message)
    return model


def solve(settings: dict[str, Any], instance: str, seed: int) -> dict[str, Any]:
    """Solve with one thread; the answer is the optimal value."""
    solver = model_builder.Solver("sat")
    words = [f"{name}: {_text(value)}" for name, value in settings.items()]
    solver.set_solver_specific_parameters(" ".join([f"num_workers: 1 random_seed: {seed}", *words]))
    status = solver.solve(read(instance))
    if status == model_builder.SolveStatus.OPTIMAL:
        return {"answer": solver.objective_value, "solved": True}
    if status == model_builder.SolveStatus.INFEASIBLE:
        return {"answer": "infeasible", "solved": True}
    return {"solved": False}


def _text(value: Any) -> str:
    """Write a value as parameters of CP-SAT are written."""
    return str(value).lower() if isinstance(value, bool) else str(value)
