"""Ledgers of virtual campaigns, written as a real campaign writes them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from captime.arrays import FloatArray
from captime.certificate import Certificate, Orders
from captime.evidence import Evidence
from captime.executors.virtual import VirtualExecutor
from captime.ledger import ConfigRow, Ledger, SampleRow
from captime.live import Seen, drive_parallel
from captime.procedures import PROCEDURES, Problem, Procedure
from captime.procedures.problem import FIFTH_SCHEDULE
from captime.runs import RunOutcome, RunRequest
from captime.skeptic import Audit, Trust, audit
from captime.sources.table import RuntimeTable
from captime.sources.window import FixedOrder
from captime.streams.finite import TARGET, Seeds
from captime.utilities import parse_utility


def runtimes(seed: int, n_configs: int, spread: float, n_instances: int = 1500) -> FloatArray:
    """Hard and easy instances, fast and slow configurations."""
    rng = np.random.default_rng(seed)
    speed = np.exp(spread * rng.normal(size=n_configs))
    hard = np.exp(0.7 * rng.normal(size=n_instances))
    return np.asarray(speed[:, None] * hard * rng.exponential(size=(n_configs, n_instances)))


class Scribe:
    """A journal that writes everything into a ledger, the prior before the first run that it governs."""

    def __init__(self, ledger: Ledger, procedure: Procedure) -> None:
        self._ledger = ledger
        self._procedure: Any = procedure
        self._facts: object = None
        self.certified: Certificate | None = None

    def asked(self, slots: int, orders: Orders) -> None:
        """See the protocol."""
        facts = self._procedure.facts() if hasattr(self._procedure, "facts") else None
        if facts is not None and facts != self._facts:
            self._ledger.noted("facts", **facts)
            self._facts = facts
        self._ledger.asked(slots, orders)

    def started(self, requests: Sequence[RunRequest]) -> None:
        """See the protocol."""
        seeds = Seeds(TARGET, int(str(self._ledger.scenario["seed"])))
        elements = {
            each.instance: SampleRow(each.instance, f"i{each.instance}", "", seeds.at(each.instance))
            for each in requests
        }
        self._ledger.started(requests, elements)

    def observed(self, outcomes: Sequence[RunOutcome], seen: Seen) -> None:
        """See the protocol."""
        self._ledger.observed(outcomes, seen)

    def certify(self, procedure: Procedure, evidence: Evidence, executor: Any) -> None:
        """An observer of the loop: better certificates are written down."""
        held = procedure.certificate()
        if held != self.certified:
            self.certified = held
            left = int(procedure.candidates.sum())
            self._ledger.certified(held, procedure.rounds, float(evidence.tally.seconds.sum()), executor.now, left)


def written(
    path: Path,
    seconds: FloatArray,
    *,
    utility: str = "log-laplace(1, 1)",
    procedure: str = "race",
    options: Mapping[str, object] | None = None,
    delta: float = 0.1,
    epsilon: float = 0.1,
    seed: int = 3,
    workers: int = 3,
    budget: float = np.inf,
    short: bool = True,
    schedule: int = FIFTH_SCHEDULE,
    loses: Callable[[RunRequest], float | None] = lambda _: None,
) -> Certificate:
    """A campaign on these runtimes (configurations × positions), written into a ledger."""
    n_configs, n_instances = seconds.shape
    names = [f"c{index}" for index in range(n_configs)], [f"i{position}" for position in range(n_instances)]
    table = RuntimeTable.build("written", *names, seconds, timeout=np.inf)
    problem = Problem(
        n_configs=n_configs,
        utility=parse_utility(utility),
        delta=delta,
        epsilon=epsilon,
        n_instances=n_instances,
        seed=seed,
        short_captimes=short,
        schedule=schedule,
    )
    decider = PROCEDURES[procedure](problem, **(options or {}))
    scenario = {
        "utility": utility,
        "delta": delta,
        "procedure": procedure,
        "options": dict(options or {}),
        "seed": seed,
        "captime_first": 1.0,
        "goal": epsilon,
        "schedule": schedule,
        "order": "arrival",
        "configurations": {"list": [{"name": f"c{index}", "settings": {"x": index}} for index in range(n_configs)]},
        "instances": {"sampling": "given", "seed": seed, "list": [[name, ""] for name in names[1]]},
    }
    configs = [ConfigRow(index, f"c{index}", {"settings": {"x": index}}) for index in range(n_configs)]
    with Ledger.create(path, scenario, configs) as ledger:
        # These ledgers have to be right, not to survive a power cut.
        ledger._writer.connection.execute("PRAGMA synchronous = OFF")
        scribe = Scribe(ledger, decider)
        executor = VirtualExecutor(table, FixedOrder(np.arange(n_instances)), workers, loses=loses)
        evidence = Evidence(n_configs, decider.plan, problem.utility)
        drive_parallel(
            decider, executor, evidence, budget=budget, look_every=5.0, observer=scribe.certify, journal=scribe
        )
        scribe.certify(decider, evidence, executor)
    return decider.certificate()


def audited(path: Path, *trust: Trust) -> Audit:
    """What the skeptic says of a virtual campaign: its scenario has no target, and its runs were not measured."""
    return audit(path, (Trust.SCENARIO, *trust))
