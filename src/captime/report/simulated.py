"""A simulation, in the shape that words and pictures start from: its summary, and a story from its trace file."""

import csv
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from captime.certificate import Population
from captime.errors import MissingExtra, ScenarioError
from captime.files import check_limited, open_limited
from captime.procedures.baselines import BASELINES
from captime.report.ledger_data import LedgerData, ProgressCurve
from captime.report.words import SAME_TIME, Assumption, Summary, rounded_up, summary_json
from captime.scenario.spec import goal_of
from captime.simulation import Pooled, Simulation
from captime.trace import BOOK_COLUMNS, COLUMNS, Trace

# What a simulation has to tell, in the shape that words and pictures start from.

_CROSSED = (
    "the bounds of {} configurations contradict each other, which independent instances do with probability at most "
    "delta; are the instances in a random order?"
)


def summary_of_simulation(result: Simulation) -> Summary:
    """Return everything there is to tell about it."""
    outcome = result.outcome
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
    return Summary(
        certificate=result.certificate,
        names=result.table.configs,
        utility=str(result.utility),
        procedure=result.procedure,
        options=result.options,
        bound=result.bound,
        goal=goal_of(result.procedure, result.options, result.epsilon),
        seed=result.seed,
        rounds=outcome.rounds,
        runs=int(outcome.runs.sum()),
        cpu_seconds=result.cpu_seconds,
        accounting=result.accounting,
        left=len(outcome.candidates),
        stopped=outcome.stopped,
        rests_on=[Assumption(words) for words in simulation_assumptions(result)],
        more=more,
        # Every configuration of a pool has been run.
        pool=int(np.count_nonzero(outcome.runs)),
        runs_everything=outcome.runs_everything,
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


def as_json(result: Simulation) -> dict[str, object]:
    """Everything a program could want to know; infinity, which JSON lacks, becomes null."""
    outcome = result.outcome
    told: dict[str, object] = {
        **summary_json(summary_of_simulation(result)),
        "source": result.table.name,
        "matrix_cpu_seconds": result.matrix_cpu_seconds,
        "cpu_seconds_restart": result.cpu_seconds_under("restart"),
        "cpu_seconds_resume": result.cpu_seconds_under("resume"),
        "candidates": [result.table.configs[config] for config in outcome.candidates.tolist()],
        "captimes": _by_name(result, outcome.captimes.tolist()),
        "samples": _by_name(result, outcome.samples.tolist()),
        "cpu_seconds_by_config": _by_name(result, outcome.seconds.tolist()),
        "cpu_seconds_by_purpose": {**outcome.spending, "of_these_repeated": outcome.rerun_seconds["restart"]}
        if outcome.spending
        else None,
        "capping_floor": float(outcome.capping[result.certificate.config]),
        "crossed": outcome.crossed,
        "sampling": result.sampling,
        "population": result.population,
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


# A story from a trace file, as `captime simulate --trace` writes it: decisions and incidents, but no runs.


def check_trace_path(path: Path) -> None:
    """Refuse a suffix that names no trace format, before anything is run."""
    if path.suffix not in _WRITERS:
        raise ScenarioError(f"the trace file {path} should end in {', '.join(_WRITERS)}; the suffix chooses the format")
    if path.suffix == ".parquet":
        _pyarrow()


def write_trace(trace: Trace, configs: Sequence[str], path: Path) -> None:
    """Write one row per decision, raised captime, elimination or purpose of CPU time, with the configuration's name."""
    check_trace_path(path)
    try:
        _WRITERS[path.suffix](trace, configs, path)
    except OSError as error:
        raise ScenarioError(f"the trace file {path} cannot be written: {error.strerror or error}") from error


def _write_json_lines(trace: Trace, configs: Sequence[str], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in trace.rows():
            config = int(str(row["config"]))
            file.write(json.dumps({**row, "config_name": configs[config]}) + "\n")


def _write_csv(trace: Trace, configs: Sequence[str], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*COLUMNS, *BOOK_COLUMNS, "config_name"])
        for row in trace.rows():
            writer.writerow([*(row[name] for name in (*COLUMNS, *BOOK_COLUMNS)), configs[int(str(row["config"]))]])


def _write_parquet(trace: Trace, configs: Sequence[str], path: Path) -> None:
    pa, parquet = _pyarrow()
    rows = [{**row, "config_name": configs[int(str(row["config"]))]} for row in trace.rows()]
    kinds = dict.fromkeys((*COLUMNS, *BOOK_COLUMNS), pa.float64()) | {
        "kind": pa.string(),
        "round": pa.int64(),
        "config": pa.int64(),
        "candidates": pa.int64(),
        "runs": pa.int64(),
        "purpose": pa.string(),
        "config_name": pa.string(),
    }
    parquet.write_table(pa.Table.from_pylist(rows, schema=pa.schema(kinds)), path)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa  # noqa: PLC0415 (optional)
        from pyarrow import parquet  # noqa: PLC0415 (optional)
    except ImportError:
        raise MissingExtra("writing Parquet", "parquet") from None
    return pa, parquet


_WRITERS: dict[str, Callable[[Trace, Sequence[str], Path], None]] = {
    ".jsonl": _write_json_lines,
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}


_LARGEST_LINE = 1 << 20
# Traces of a million decisions have a fifth of this.
_LARGEST = 1 << 30


def is_trace(path: Path) -> bool:
    """Whether the suffix is that of a trace."""
    return path.suffix in _READERS


def read_trace_story(path: Path) -> LedgerData:
    """The story of a simulation.

    Raises:
        ScenarioError: the file cannot be read, or is not a trace.
    """
    try:
        rows = list(_READERS[path.suffix](path))
    except OSError as error:
        raise ScenarioError(f"the trace {path} cannot be read: {error.strerror or error}; check the name") from error
    except (ValueError, csv.Error) as error:
        raise _not_a_trace(path, str(error)) from None
    if not rows:
        raise _not_a_trace(path, "it is empty")
    names: dict[int, str] = {}
    for number, row in enumerate(rows, start=1):
        missing = [name for name in (*COLUMNS, "config_name") if name not in row]
        if missing:
            raise _not_a_trace(path, f"row {number} has no column {missing[0]}")
        names[_number(path, number, row, "config", int)] = str(row["config_name"])
    return LedgerData(
        path=path,
        names=[names.get(config, f"configuration {config}") for config in range(max(names) + 1)],
        progress=_progress(path, rows),
        certificate=None,
        rounds=sum(row["kind"] == "decision" for row in rows),
        spending={
            str(row["purpose"]): _number(path, number, row, "cpu_seconds", float)
            for number, row in enumerate(rows, start=1)
            if row["kind"] == "spent" and "purpose" in row
        },
    )


def _progress(path: Path, rows: list[Mapping[str, Any]]) -> ProgressCurve:
    numbered = list(enumerate(rows, start=1))
    decisions = [(number, row) for number, row in numbered if row["kind"] == "decision"]
    gone: dict[float, list[int]] = {}
    raised = []
    for number, row in numbered:
        seconds, config = _number(path, number, row, "seconds", float), _number(path, number, row, "config", int)
        if row["kind"] == "eliminated":
            gone.setdefault(seconds, []).append(config)
        elif row["kind"] == "captime":
            raised.append((seconds, config, _number(path, number, row, "captime", float)))

    def column(name: str, kind: Callable[[Any], float]) -> list[float]:
        return [_number(path, number, row, name, kind) for number, row in decisions]

    return ProgressCurve(
        seconds=np.array(column("seconds", float)),
        epsilon=np.array(column("epsilon", float)),
        gamma=np.full(len(decisions), np.nan),
        config=np.array(column("config", int), dtype=np.int64),
        candidates=np.array(column("candidates", int), dtype=np.int64),
        out=[(seconds, tuple(configs)) for seconds, configs in sorted(gone.items())],
        raised=raised,
    )


def _number(path: Path, number: int, row: Mapping[str, Any], name: str, kind: Callable[[Any], Any]) -> Any:
    try:
        value = kind(row[name])
    except (TypeError, ValueError):
        raise _not_a_trace(path, f"row {number}: its {name} is {row[name]!r}, expected a number") from None
    if isinstance(value, float) and math.isnan(value):
        raise _not_a_trace(path, f"row {number}: its {name} is not a number")
    return value


def _not_a_trace(path: Path, why: str) -> ScenarioError:
    return ScenarioError(
        f"{path} is not a trace: {why}. Traces are written by `captime simulate --trace`; a ledger is a file of its own"
    )


def _opened(path: Path) -> TextIO:
    return TextIOWrapper(open_limited(path, _LARGEST), encoding="utf-8", newline="")


def _read_json_lines(path: Path) -> Iterable[Mapping[str, Any]]:
    with _opened(path) as file:
        # One character more than allowed, so that a line without an end is noticed before it is read whole.
        while line := file.readline(_LARGEST_LINE + 1):
            if len(line) > _LARGEST_LINE:
                raise ValueError("a line is longer than any trace's")
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError(  # noqa: TRY004 (the file is wrong, not the type of an argument)
                    f"a line holds {type(row).__name__}, expected an object"
                )
            yield row


def _read_csv(path: Path) -> Iterable[Mapping[str, Any]]:
    with _opened(path) as file:
        yield from csv.DictReader(iter(lambda: file.readline(_LARGEST_LINE), ""))


def _read_parquet(path: Path) -> Iterable[Mapping[str, Any]]:
    try:
        from pyarrow import ArrowInvalid, parquet  # noqa: PLC0415 (optional)
    except ImportError:
        raise MissingExtra("reading Parquet", "parquet") from None
    check_limited(path, _LARGEST)
    try:
        rows: list[Mapping[str, Any]] = parquet.read_table(path).to_pylist()
    except ArrowInvalid as error:
        raise ValueError(str(error)) from None
    return rows


_READERS: dict[str, Callable[[Path], Iterable[Mapping[str, Any]]]] = {
    ".jsonl": _read_json_lines,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}
