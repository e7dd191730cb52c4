"""A simulation as one JSON object: the same keys for every procedure."""

import math
from collections.abc import Sequence

from captime.certificate import Certificate
from captime.report.simulated import assumptions
from captime.simulation import Pooled, Simulation


def certificate_json(held: Certificate, names: Sequence[str]) -> dict[str, object]:
    """The statement itself."""
    return {
        "config": held.config,
        "config_name": names[held.config],
        "epsilon": held.epsilon,
        "delta": held.delta,
        "gamma": held.gamma,
        "utility_low": held.utility_low,
        "utility_high": held.utility_high,
        "challenger": None if held.challenger is None else names[held.challenger],
        "mode": held.mode,
        "delta_shares": dict(held.shares),
        "population": held.population.value,
        "instances": held.instances,
        "instances_run": held.instances_run,
        "other": None if held.other is None else certificate_json(held.other, names),
    }


def as_json(result: Simulation) -> dict[str, object]:
    """Everything a program could want to know; infinity, which JSON lacks, becomes null."""
    held, outcome = result.certificate, result.outcome
    told: dict[str, object] = {
        "certificate": certificate_json(held, result.table.configs),
        "procedure": result.procedure,
        "options": {name: str(value) for name, value in result.options.items()},
        "bound": result.bound,
        "utility": str(result.utility),
        "epsilon_goal": result.epsilon,
        "source": result.table.name,
        "n_configs": result.table.n_configs,
        "cpu_seconds": result.cpu_seconds,
        "cpu_days": result.cpu_seconds / 86400,
        "matrix_cpu_seconds": result.matrix_cpu_seconds,
        "cpu_seconds_restart": result.cpu_seconds_under("restart"),
        "cpu_seconds_resume": result.cpu_seconds_under("resume"),
        "accounting": result.accounting,
        "runs": int(outcome.runs.sum()),
        "rounds": outcome.rounds,
        "candidates_left": len(outcome.candidates),
        "candidates": [result.table.configs[config] for config in outcome.candidates.tolist()],
        "captimes": _by_name(result, outcome.captimes.tolist()),
        "samples": _by_name(result, outcome.samples.tolist()),
        "cpu_seconds_by_config": _by_name(result, outcome.seconds.tolist()),
        "cpu_seconds_by_purpose": {**outcome.spending, "of_these_repeated": outcome.rerun_seconds["restart"]}
        if outcome.spending
        else None,
        "capping_floor": float(outcome.capping[held.config]),
        "crossed": outcome.crossed,
        "stopped": outcome.stopped,
        "sampling": result.sampling,
        "seed": result.seed,
        "population": result.population,
        "assumptions": assumptions(result),
        "notes": list(result.table.notes),
    }
    if isinstance(result.table, Pooled):
        told["space"] = _on_space(result.table)
    return told


def _on_space(pooled: Pooled) -> dict[str, object]:
    """What only a simulation on a space has to tell."""
    found = pooled.found
    return {
        "settings": found.settings,
        "worth": found.worth,
        "worth_of_best": found.best,
        "worth_of_default": found.default,
        "better_by_more_than_epsilon": found.above,
        "compared_with": found.drawn,
        "proposals": pooled.proposals,
    }


def _by_name(result: Simulation, values: list[float]) -> dict[str, float | None]:
    finite = (value if math.isfinite(value) else None for value in values)
    return dict(zip(result.table.configs, finite, strict=True))
