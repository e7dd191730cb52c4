"""The `as-published` variants decide exactly like the authors' code; see README.md for where the numbers come from."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from captime import RuntimeTable, simulate
from captime.arrays import FloatArray
from captime.errors import ScenarioError

RECORDED: dict[str, dict[str, Any]] = {
    name: json.loads((Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8"))
    for name in ("small", "medium")
}


@cache
def table(name: str) -> RuntimeTable:
    """The seeded matrix of a recording: configuration factor x instance hardness x noise, clipped."""
    made = RECORDED[name]["matrix"]
    n_configs, n_instances = made["n"], made["N"]
    rng = np.random.default_rng(made["seed"])
    speed = (2.0 + RECORDED[name]["spread"] * np.arange(n_configs))[rng.permutation(n_configs)]
    hardness = rng.normal(0, 1.5, n_instances)
    noise = rng.normal(0, 0.5, (n_configs, n_instances))
    seconds: FloatArray = np.minimum(np.round(np.exp(speed[:, None] + hardness + noise), 6), made["timeout"])
    configs, instances = (f"c{i}" for i in range(n_configs)), (f"i{j}" for j in range(n_instances))
    return RuntimeTable.build(name, configs, instances, seconds, timeout=made["timeout"])


def cases(kind: str, depth: int) -> list[Any]:
    """(recording, utility, path of keys, recorded) for every leaf of one kind of trace."""
    found = []
    for name, recording in RECORDED.items():
        for utility, kinds in recording["utilities"].items():
            leaves: list[tuple[tuple[str, ...], Any]] = [((), kinds[kind])]
            for _ in range(depth):
                leaves = [((*path, key), value) for path, inner in leaves for key, value in inner.items()]
            found += [
                pytest.param(name, utility, path, value, id="-".join((name, utility, *path))) for path, value in leaves
            ]
    return found


@pytest.mark.parametrize(("name", "utility", "path", "recorded"), cases("up (utilitarian-ac)", 1))
def test_up_decides_like_the_published_code(
    name: str, utility: str, path: tuple[str], recorded: dict[str, Any]
) -> None:
    """Every recorded round: same leader, same candidates, same epsilon, same cost; and the same end."""
    result = simulate(
        table(name),
        utility=utility,
        procedure="up",
        delta=RECORDED[name]["delta"],
        epsilon=float(path[0]),
        sampling="given",
        options={"variant": "as-published"},
    )
    if "failed" in recorded:
        assert recorded["failed"] == "IndexError"
        assert result.outcome.stopped == "instances"
        return
    outcome = result.outcome
    assert (outcome.rounds, result.certificate.config, len(outcome.candidates)) == (
        recorded["rounds"],
        recorded["config"],
        recorded["left"],
    )
    assert result.certificate.epsilon == pytest.approx(recorded["epsilon"], rel=1e-9, abs=0)
    assert result.cpu_seconds == pytest.approx(recorded["cpu_seconds"], rel=1e-9, abs=0)
    made = outcome.trace.decisions()
    assert len(recorded["trace"]) > 40
    for number, config, epsilon, left, seconds in recorded["trace"]:
        at = number - 1
        assert (made.round[at], made.config[at], made.candidates[at]) == (number, config, left)
        assert made.epsilon[at] == pytest.approx(epsilon, rel=1e-9, abs=0)
        assert made.seconds[at] == pytest.approx(seconds, rel=1e-9, abs=0)


@pytest.mark.parametrize(("name", "utility", "path", "recorded"), cases("naive (utilitarian-ac)", 2))
def test_naive_decides_like_the_published_code(
    name: str, utility: str, path: tuple[str, str], recorded: dict[str, Any]
) -> None:
    """Same configuration, same number of instances, same cost, and refused where the published code refuses."""
    captime, epsilon = path

    def run() -> Any:
        return simulate(
            table(name),
            utility=utility,
            procedure="naive",
            delta=RECORDED[name]["delta"],
            epsilon=float(epsilon),
            sampling="given",
            options={"variant": "as-published", "captime": float(captime)},
        )

    if "failed" in recorded:
        reason = "must be below epsilon" if "captime" in recorded["failed"] else "instances for epsilon"
        with pytest.raises(ScenarioError, match=reason):
            run()
        return
    result = run()
    assert result.certificate.config == recorded["config"]
    assert set(result.outcome.samples.tolist()) == {recorded["m"]}
    assert result.cpu_seconds == pytest.approx(recorded["cpu_seconds"], rel=1e-9, abs=0)
