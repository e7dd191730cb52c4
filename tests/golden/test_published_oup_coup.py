"""OUP and COUP `as-published` decide exactly like the authors' code; see README.md for where the numbers come from."""

from typing import Any

import pytest

from captime import simulate
from captime.drive import drive
from captime.procedures import Problem
from captime.procedures.coup import Coup
from captime.sources.replay import Replay
from captime.sources.window import stream_of
from captime.utilities import parse_utility
from golden.test_published_decisions import RECORDED, cases, table

EVERY = 200  # decisions between two recorded rows


@pytest.mark.parametrize("rule", ["old", "new"])
@pytest.mark.parametrize("name", RECORDED)
def test_oup_decides_like_the_published_code(name: str, rule: str) -> None:
    """Every recorded decision: same leader, same epsilon, same cost; and the same end."""
    found = [case.values for case in cases(f"oup {rule} (coup)", 1) if case.values[0] == name]
    assert len(found) == 4
    for _, utility, path, recorded in found:
        compare(name, rule, str(utility), float(path[0]), recorded)


def compare(name: str, rule: str, utility: str, epsilon: float, recorded: dict[str, Any]) -> None:
    """One recording against one simulation."""
    result = simulate(
        table(name),
        utility=utility,
        procedure="oup",
        delta=RECORDED[name]["delta"],
        epsilon=epsilon,
        sampling="given",
        options={"rule": rule, "variant": "as-published"},
    )
    if "failed" in recorded:
        assert recorded["failed"].strip() == "IndexError"
        assert result.outcome.stopped == "instances"
        return
    assert result.certificate.config == recorded["config"]
    assert result.certificate.epsilon == pytest.approx(recorded["epsilon"], rel=1e-9, abs=0)
    assert result.cpu_seconds == pytest.approx(recorded["cpu_seconds"], rel=1e-9, abs=0)
    made = result.outcome.trace.decisions()
    rows = recorded["trace_every_200"]
    assert len(rows) >= 10
    for number, (config, reached, seconds) in enumerate(rows):
        # The last row is the last decision, unless the recording was cut.
        at = min(EVERY * number, len(made.round) - 1)
        assert made.config[at] == config
        assert made.epsilon[at] == pytest.approx(reached, rel=1e-9, abs=0)
        assert made.seconds[at] == pytest.approx(seconds, rel=1e-9, abs=0)


@pytest.mark.parametrize(("name", "utility", "path", "recorded"), cases("coup (coup)", 0))
def test_coup_decides_like_the_published_code(
    name: str, utility: str, path: tuple[()], recorded: list[dict[str, Any]]
) -> None:
    """Every recorded phase: same pool, same leader, same epsilon, same cost. The recording ends after four phases."""
    recorded_table, worth = table(name), parse_utility(utility)
    stream = stream_of("given", recorded_table.groups, 0)
    problem = Problem(
        recorded_table.n_configs,
        worth,
        RECORDED[name]["delta"],
        captime_limit=recorded_table.limit,
        n_instances=stream.length,
    )
    procedure = Coup(problem, variant="as-published")
    outcome = drive(procedure, Replay(recorded_table, stream, procedure.plan, worth))
    seconds = outcome.trace.decisions().seconds
    assert len(procedure.phases) >= len(recorded) >= 2
    for phase, expected in zip(procedure.phases, recorded, strict=False):
        assert (phase.n_configs, phase.config) == (expected["n"], expected["config"])
        assert phase.epsilon == pytest.approx(expected["epsilon"], rel=1e-9, abs=0)
        assert seconds[phase.decisions - 1] == pytest.approx(expected["cpu_seconds"], rel=1e-9, abs=0)
