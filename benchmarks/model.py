"""What proposals of the model are worth, and what they cost: `python benchmarks/model.py`.

On spaces whose utility is known as a formula, a pool grows in the usual order, with scores that are noisy and uneven.
Printed for each: the share of random draws that are better than the best of the pool (smaller is better), with the
model and with random draws alone, at several sizes; and CPU milliseconds per proposal, refits included.

Then campaigns of several minutes in the spaces of the examples, on made-up targets whose runs take as long as the
example's: how much CPU time the model took by a stopwatch, and by its own estimate, of that of the runs.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from captime.scenario import load_scenario
from captime.simulation import MadeUp, simulate_on_space
from captime.spaces import read_space
from captime.spaces.formats.section import read_section
from captime.spaces.model import Known
from captime.spaces.proposals import Proposer
from captime.spaces.space import Space
from captime.spaces.values import Settings, Value

EXAMPLES = Path(__file__).parents[1] / "examples"
SIZES = (16, 32, 64, 128, 256)
SEEDS = 10


def number(settings: Mapping[str, Value], name: str, default: float = 0.0) -> float:
    """A setting as a number; the default if it is inactive."""
    return float(settings.get(name, default))


def smooth() -> tuple[Space, Callable[[Settings], float]]:
    """Six numbers, of which four matter, two of them together."""
    section = {f"x{place}": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.5} for place in range(6)}

    def utility(settings: Settings) -> float:
        x = [number(settings, f"x{place}") for place in range(6)]
        bell = np.exp(-((x[0] - 0.8) ** 2) / 0.05 - (x[1] - x[2]) ** 2 / 0.1)
        return float(0.2 + 0.6 * bell + 0.15 * x[3])

    return read_section(section, "smooth"), utility


def conditional() -> tuple[Space, Callable[[Settings], float]]:
    """A choice of engines, each with parameters of its own; one of them is far better when set well."""
    section: dict[str, object] = {
        "engine": {"type": "categorical", "choices": ["a", "b", "c", "d"], "default": "a"},
        "depth": {"type": "int", "low": 1, "high": 1000, "log": True, "default": 30},
        "decay": {"type": "float", "low": 0.5, "high": 0.999, "default": 0.95},
        "fast": {"type": "bool", "default": False},
        "effort": {"type": "ordinal", "choices": ["low", "mid", "high"], "default": "mid"},
        "conditions": ["depth | engine in {b, c}", "decay | engine == c", "effort | fast == false"],
        "forbidden": ["engine == d && fast == true"],
    }

    def utility(settings: Settings) -> float:
        base = {"a": 0.4, "b": 0.35, "c": 0.3, "d": 0.2}[str(settings["engine"])]
        depth = np.log(number(settings, "depth", 1.0)) / np.log(1000)
        if settings["engine"] == "c":
            base += 0.45 * float(np.exp(-((depth - 0.7) ** 2) / 0.02)) * number(settings, "decay")
        return base + (0.1 if settings["fast"] else 0.03 * (settings["effort"] == "high"))

    return read_section(section, "conditional"), utility


def wide() -> tuple[Space, Callable[[Settings], float]]:
    """Sixty parameters as solvers have them, of which eight matter."""
    section: dict[str, object] = {f"flag{place}": {"type": "bool", "default": True} for place in range(30)}
    for place in range(30):
        section[f"n{place}"] = {"type": "int", "low": 1, "high": 10000, "log": True, "default": 100}

    def utility(settings: Settings) -> float:
        flags = sum(0.06 * bool(settings[f"flag{place}"]) * (-1) ** place for place in range(4))
        n = [np.log(number(settings, f"n{place}")) / np.log(10000) for place in range(4)]
        return float(
            np.clip(0.35 + flags + 0.25 * n[0] - 0.2 * n[1] + 0.2 * np.exp(-((n[2] - n[3]) ** 2) / 0.05), 0, 1)
        )

    return read_section(section, "wide"), utility


def grow(
    space: Space, utility: Callable[[Settings], float], seed: int, *, model: bool
) -> tuple[list[float], float, int]:
    """Best true utility in the pool at each size, CPU seconds of all proposals, and number of refits."""
    rng = np.random.default_rng([seed, 99])
    proposer = Proposer(space, seed, model=model)
    known: list[Known] = []
    truths: list[float] = []
    seconds = 0.0
    best = []
    for index in range(max(SIZES)):
        began = time.process_time()
        settings = proposer.propose(index, known)
        if proposer.origin(index) == "model":
            seconds += time.process_time() - began
        truth = utility(settings)
        truths.append(truth)
        n = int(rng.integers(12, 60)) if truth < max(truths) else 200
        seen = float(np.clip(truth + 0.29 * rng.standard_normal() / np.sqrt(n), 0, 1))
        cut = 0.05 * float(rng.random())
        known.append(Known(settings, max(seen - cut, 0.0), min(seen + cut, 1.0), n))
        if index + 1 in SIZES:
            best.append(max(truths))
    return best, seconds, proposer.refits


class Timed(Proposer):
    """A proposer with a stopwatch."""

    def __init__(self, space: Space, seed: int) -> None:
        super().__init__(space, seed)
        self.taken = 0.0
        self.proposals = 0

    def propose(
        self, index: int, known: Sequence[Known] = (), spent: float = math.inf, taught: Sequence[Known] = ()
    ) -> Settings:
        """As the proposer does, timed if it is a model's."""
        began = time.process_time()
        found = super().propose(index, known, spent, taught)
        if self.origin(index) == "model":
            self.taken += time.process_time() - began
            self.proposals += 1
        return found


def campaigns(minutes: Sequence[float]) -> None:
    """The model's share of the CPU time, in campaigns on the examples' spaces."""
    print("the model's share of the runs' CPU time in campaigns; at most 1 % is allowed")
    for example in ("compressor", "highs-auctions", "clasp", "kissat"):
        scenario = load_scenario(EXAMPLES / example / "scenario.toml")
        space = read_space(EXAMPLES / example / "scenario.toml")
        typical = float(scenario.utility.inverse(np.array(0.5)))
        for minute in minutes:
            proposer = Timed(space, 1)
            result = simulate_on_space(
                proposer,
                MadeUp(space, typical, seed=1),
                utility=scenario.utility,
                epsilon=0.02,
                options={"gamma": 0.0},
                budget=60.0 * minute,
            )
            spent, each = result.cpu_seconds, proposer.taken / max(1, proposer.proposals)
            print(
                f"{example:15} {len(space.names):4} parameters  {minute:4g} min: {proposer.proposals:4} proposals, "
                f"{proposer.refits:3} models, measured {proposer.taken / spent:.2%}, estimated "
                f"{proposer.restraint.seconds / spent:.2%}; {1e3 * each:5.1f} ms a proposal, {each / spent:.4%} of all"
            )


def main() -> None:
    """Print the tables."""
    print(f"share of the space above the best of the pool, geometric mean over {SEEDS} seeds, at pool sizes {SIZES}")
    for name, make in {"smooth": smooth, "conditional": conditional, "wide": wide}.items():
        space, utility = make()
        rng = np.random.default_rng(0)
        population = np.sort([utility(space.settings(row)) for row in space.drawn(rng, 20000)])
        for model in (False, True):
            results = [grow(space, utility, seed, model=model) for seed in range(SEEDS)]
            shares = np.array([[(population > best).mean() + 1 / 40000 for best in result[0]] for result in results])
            text = "  ".join(f"{share:.5f}" for share in np.exp(np.log(shares).mean(axis=0)))
            line = f"{name:12} {'model ' if model else 'random'}  {text}"
            if model:
                proposals = sum(Proposer(space, 0).origin(index) == "model" for index in range(max(SIZES)))
                each = sum(result[1] for result in results) / SEEDS / proposals * 1e3
                line += f"   {each:.1f} ms per proposal, {results[0][2]} refits for {proposals} proposals"
            print(line)
    campaigns((1.0, 5.0))


if __name__ == "__main__":
    main()
