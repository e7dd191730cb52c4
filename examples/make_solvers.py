# noqa: INP001 (a script beside its data, not part of a package)
"""Make solvers.csv again: four made-up configurations of a solver on 800 instances, everything drawn from one seed."""

from pathlib import Path

import numpy as np

SEED = 20231
TIMEOUT = 300.0
N_INSTANCES = 800
CRASHES = 0.01
# Typical seconds, and how much the luck of a single run matters (standard deviation on the log scale).
CONFIGS = {
    "default": (25.0, 0.4),
    "fast-restarts": (4.0, 1.0),
    "no-preprocessing": (45.0, 0.6),
    "careful": (120.0, 0.3),
}


def write_solvers(path: Path) -> None:
    """Write the table in the long form: one line per run."""
    rng = np.random.default_rng(SEED)
    difficulty = rng.normal(0.0, 1.0, N_INSTANCES)
    lines = ["configuration,instance,seconds,status"]
    for name, (typical, luck) in CONFIGS.items():
        seconds = typical * np.exp(difficulty + rng.normal(0.0, luck, N_INSTANCES))
        crashed = rng.random(N_INSTANCES) < CRASHES
        for number in range(N_INSTANCES):
            instance = f"i{number + 1:03}.cnf"
            if crashed[number]:
                lines.append(f"{name},{instance},,crash")
            elif seconds[number] >= TIMEOUT:
                lines.append(f"{name},{instance},{TIMEOUT:.0f},timeout")
            else:
                lines.append(f"{name},{instance},{max(seconds[number], 0.01):.2f},ok")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_solvers(Path(__file__).with_name("solvers.csv"))
