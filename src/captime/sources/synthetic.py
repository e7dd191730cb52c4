"""Tables without a file of the user: made up from distributions, or shipped with the package."""

from pathlib import Path

import numpy as np

from captime.arrays import FloatArray
from captime.errors import ScenarioError
from captime.sources import read_table
from captime.sources.table import MAX_CELLS, RuntimeTable

# Made-up runtimes with known structure, for demonstrations, benchmarks and tests.

# About 1 MB at a time: filled in place, and small enough to stay in the processor's cache over all steps.
_BLOCK_CELLS = 1 << 17
# Far above any runtime a table accepts, and just below where exp overflows.
_LARGEST_LOG = 700.0


def synthetic_table(
    seed: int,
    n_configs: int,
    n_instances: int,
    *,
    limit: float,
    spread: float | None = None,
    first_log_speed: float = 2.0,
    hardness: float = 1.5,
    noise: float = 0.5,
    name: str | None = None,
) -> RuntimeTable:
    """Runtimes exp(configuration + instance + noise) seconds, cut at `limit`; one seed, one table.

    Args:
        seed: Fixes everything.
        n_configs: How many configurations.
        n_instances: How many instances.
        limit: The timeout in seconds; infinity for none.
        spread: Step between the logarithms of neighbouring configurations' typical runtimes. Left out, the
            slowest is typically 55 times slower than the fastest (4 on the log scale), however many there
            are.
        first_log_speed: Logarithm of the fastest configuration's typical runtime. Which configuration is the
            fastest is drawn from the seed.
        hardness: Standard deviation of the instances' effect on the log scale.
        noise: Standard deviation of what is left, drawn for each run.
        name: What to call the table.

    >>> synthetic_table(7, 3, 5, limit=60.0).seconds.shape
    (3, 5)
    """
    step = 4.0 / max(n_configs - 1, 1) if spread is None else spread
    _check_size(seed, n_configs, n_instances)
    _check_shape(limit, step, first_log_speed, hardness, noise)
    rng = np.random.default_rng(seed)
    speed = rng.permutation(first_log_speed + step * np.arange(n_configs))
    difficulty = hardness * rng.standard_normal(n_instances)
    seconds: FloatArray = np.empty((n_configs, n_instances))
    block = max(1, _BLOCK_CELLS // n_instances)
    for start in range(0, n_configs, block):
        part = seconds[start : start + block]
        # Row by row from one generator, so the block size cannot change the numbers.
        rng.standard_normal(out=part)
        part *= noise
        part += speed[start : start + block, None]
        part += difficulty
        np.minimum(part, _LARGEST_LOG, out=part)
        np.exp(part, out=part)
        np.minimum(part, limit, out=part)
    return RuntimeTable.build(
        name or f"synthetic-{n_configs}x{n_instances}-seed{seed}",
        (f"c{config}" for config in range(n_configs)),
        (f"i{instance}" for instance in range(n_instances)),
        seconds,
        timeout=limit,
    )


def _check_size(seed: int, n_configs: int, n_instances: int) -> None:
    if seed < 0:
        raise ScenarioError(f"synthetic table: the seed is {seed}; expected a whole number that is not negative")
    if n_configs < 1 or n_instances < 1 or n_configs * n_instances > MAX_CELLS:
        raise ScenarioError(
            f"synthetic table: {n_configs} configurations x {n_instances} instances were asked for; expected "
            f"at least one of each and at most {MAX_CELLS} runs. Choose a smaller table."
        )


def _check_shape(limit: float, spread: float, first_log_speed: float, hardness: float, noise: float) -> None:
    for what, value in (("spread", spread), ("first_log_speed", first_log_speed)):
        if not np.isfinite(value):
            raise ScenarioError(f"synthetic table: {what} is {value}; expected a finite number")
    for what, value in (("hardness", hardness), ("noise", noise)):
        if not 0 <= value < np.inf:
            raise ScenarioError(f"synthetic table: {what} is {value}; expected a finite number that is not negative")
    if not limit > 0:
        raise ScenarioError(f"synthetic table: limit is {limit}; expected seconds above 0, or inf for no timeout")


# Measured tables that come with captime, by name; each with a datasheet beside it.

FOLDER = Path(__file__).parents[1] / "data"


def shipped_tables() -> dict[str, Path]:
    """Names and places."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.npz"))}


def datasheet(name: str) -> Path:
    """The page that says how the table of that name was measured."""
    return path_of(name).with_suffix(".md")


def path_of(name: str) -> Path:
    """Where the table of that name lies.

    Raises:
        ScenarioError: there is no such table.
    """
    known = shipped_tables()
    if name not in known:
        there = f"there are {', '.join(known)}" if known else "none are shipped with this copy"
        raise ScenarioError(f"there is no table {name!r}; {there}")
    return known[name]


def table_at(data: str, *, timeout: float | None = None, unsafe_format: str | None = None) -> RuntimeTable:
    """A shipped table by name, or the one at that path: a file, or an ASlib scenario folder.

    Args:
        data: Name or path.
        timeout: The table's own timeout in seconds, where the file does not say it.
        unsafe_format: Name of a format that is only read on request, such as `pickle`.
    """
    known = shipped_tables()
    return read_table(known.get(data, Path(data)), timeout=timeout, unsafe_format=unsafe_format)
