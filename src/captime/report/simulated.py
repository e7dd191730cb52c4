"""What a simulation has to tell, in the shape that words and pictures start from."""

import json
import math
from collections.abc import Sequence

import numpy as np

from captime.campaign.question import goal_of
from captime.certificate import Certificate, Population
from captime.procedures.baselines import BASELINES
from captime.report.words import SAME_TIME, STOPPED_ON_RECORD, Account, cpu_time, rounded_up, why_stopped
from captime.simulation import Pooled, Simulation

_CROSSED = (
    "the bounds of {} configurations contradict each other, which independent instances do with probability at most "
    "delta; are the instances in a random order?"
)


def account_of_simulation(result: Simulation) -> Account:
    """Everything there is to tell about it."""
    outcome = result.outcome
    told = "free of charge (a hypothetical oracle)" if result.procedure == "oracle" else cpu_time(result.cpu_seconds)
    runs = int(outcome.runs.sum())
    more = []
    if result.procedure in BASELINES:
        more.append(("its own guarantee", BASELINES[result.procedure].guarantee))
    if isinstance(result.table, Pooled):
        more += _really(result.table)
    hidden = capping_floor(result)
    if hidden is not None:
        more.append(("capping floor", hidden))
    if outcome.crossed:
        more.append(("warning", _CROSSED.format(outcome.crossed)))
    goal = goal_of(result.procedure, result.options, result.epsilon)
    return Account(
        certificate=result.certificate,
        names=result.table.configs,
        utility=str(result.utility),
        procedure=result.procedure,
        options=result.options,
        bound=result.bound,
        rounds=outcome.rounds,
        runs=runs,
        cost=f"{told}, {runs:,} runs, {result.accounting} accounting",
        left=len(outcome.candidates),
        stopped=why_stopped(outcome.stopped, goal, STOPPED_ON_RECORD),
        rests_on=simulation_assumptions(result),
        more=more,
        # Every configuration of a pool has been run.
        pool=int(np.count_nonzero(outcome.runs)),
    )


def _really(pooled: Pooled) -> list[tuple[str, str]]:
    """Return what is not known of a real program: what the answer is worth, and which configurations are better."""
    found = pooled.found
    default = "" if found.default is None else f", the default {found.default:.4f}"
    return [
        ("its settings", json.dumps(found.settings)),
        ("pool", f"{pooled.n_configs:,} configurations, {pooled.proposals:,} of them proposed by a model"),
        ("really worth", f"{found.worth:.4f}; the best of the pool {found.best:.4f}{default}"),
        ("better by more than epsilon", f"{found.above:.2%} of {found.drawn:,} random configurations"),
    ]


def capping_floor(result: Simulation) -> str | None:
    """What the table's timeout hides, if it hides enough to matter: epsilon cannot fall below it."""
    outcome, limit = result.outcome, result.table.limit
    config = result.certificate.config
    at_limit = outcome.captimes[config] >= limit and math.isfinite(limit)
    hidden = float(outcome.capping[config])
    if not at_limit or hidden < 1e-4:
        return None
    return (
        f"{rounded_up(hidden)} of the utility lies behind the table's timeout of {limit:g} s; epsilon cannot fall "
        "much below it"
    )


def simulation_assumptions(result: Simulation) -> list[str]:
    """What the certificate rests on, in words a user can check."""
    table = result.table
    if isinstance(table, Pooled):
        return _assumptions_on_space(result, table)
    said = []
    if result.certificate.delta == 0:
        said.append(f"The {table.n_groups:,} instances of the table are all that matters.")
    elif result.certificate.population is Population.THESE:
        said.append(
            f"The {table.n_groups:,} instances were met in a random order (seed {result.seed}), each once; nothing is "
            "assumed about where they come from. The claim about more like them assumes that they are a fair sample."
        )
    elif result.population == "finite":
        said.append(
            f'"Best" means best on average over exactly these {table.n_instances:,} recorded runs per configuration; '
            f"instances were drawn with replacement (seed {result.seed})."
        )
    else:
        order = f"in random order (seed {result.seed})" if result.sampling == "shuffle" else "in the recorded order"
        said.append(
            f"The {table.n_groups:,} instances are independent draws from the distribution of interest, run {order}, "
            "each once."
        )
    if result.repeats or result.certificate.population is Population.THESE:
        said.append(SAME_TIME)
    else:
        said.append("Every run is made once, with a captime that was fixed before it started.")
    if result.certificate.gamma:
        said.append("The rows of the table are independent draws from the space gamma speaks about, in this order.")
    if math.isfinite(table.limit):
        said.append(f"A run recorded at the timeout of {table.limit:g} s counts as at least that long.")
    if table.never_finished > 0:
        said.append(
            f"Crashed and failed runs ({table.never_finished:.1%} of the runs) never finish and are worth nothing."
        )
    return said


def _assumptions_on_space(result: Simulation, pooled: Pooled) -> list[str]:
    """The same where a target stood for the program."""
    said = [pooled.law]
    if result.certificate.population is Population.THESE:
        said.append(
            f"The {result.certificate.instances:,} instances were met in a random order (seed {result.seed}), each "
            "once; nothing is assumed about where they come from. The claim about more like them assumes that they are "
            "a fair sample."
        )
    elif result.population == "finite":
        said.append(f"Instances are drawn with replacement from {pooled.n_instances:,} (seed {result.seed}).")
    if result.certificate.gamma:
        said.append("Gamma is a share of random configurations, by the laws of the parameters.")
    if math.isfinite(pooled.limit):
        said.append(f"A run recorded at the timeout of {pooled.limit:g} s counts as at least that long.")
    return said


# A simulation as one JSON object: the same keys for every procedure.


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
        "assumptions": simulation_assumptions(result),
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
