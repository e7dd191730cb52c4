"""Measuring a table: every configuration on every instance up to a captime, to be simulated on at will."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from captime.arrays import BoolArray, FloatArray
from captime.campaign.question import Question
from captime.campaign.result import CampaignResult
from captime.campaign.run import MakeExecutor, run_campaign
from captime.errors import ScenarioError
from captime.ledger import LedgerReader
from captime.ledger.reading import Columns, which_mean
from captime.live import Observer
from captime.procedures.survey import Survey
from captime.runs import Meaning
from captime.scenario.parts import RunSettings
from captime.sources import RuntimeTable

SURVEY = "survey"
"""What ledgers of measured tables name as their procedure."""


def _never() -> bool:
    return False


def measure(
    question: Question,
    path: Path,
    *,
    captime: float,
    instances: int | None = None,
    manner: RunSettings | None = None,
    observer: Observer | None = None,
    interrupted: Callable[[], bool] = _never,
    make_executor: MakeExecutor | None = None,
) -> CampaignResult:
    """Make all runs that are still missing in this ledger.

    Args:
        question: Program, instances and configurations; its procedure is not asked.
        path: The ledger.
        captime: For every run, in seconds.
        instances: How many stream positions; needed where the stream has no end.
        manner: How it is carried out.
        observer: Called after every lap.
        interrupted: Asked before every lap.
        make_executor: Where runs happen.
    """
    check_sampling(question)
    surveyed = survey_of(question, captime, instances)
    return run_campaign(surveyed, path, manner, observer=observer, interrupted=interrupted, make_executor=make_executor)


def check_sampling(question: Question) -> None:
    """Refuse instances that are drawn with replacement: a table has every instance once."""
    if question.stream.describe().get("sampling") == "replace":
        raise ScenarioError(
            'instances.sampling is "replace", which draws the same instance again and again; expected "shuffle" or '
            '"given", because a table has every instance once. Change it for the measuring'
        )


def survey_of(question: Question, captime: float, instances: int | None = None) -> Question:
    """Return the question that a ledger of `measure` belongs to: all runs up to that captime, without a race.

    Args:
        question: Program, instances and configurations.
        captime: For every run, in seconds.
        instances: How many stream positions; all of them if it is left out.
    """
    if not (np.isfinite(captime) and captime > 0):
        raise ScenarioError(f"the captime for every run is {captime!r} s, expected more than 0; try 10s")
    return replace(
        question,
        procedure=SURVEY,
        options={},
        epsilon=0.0,
        maker=partial(Survey, captime=captime, instances=instances),
        identity={
            **{name: value for name, value in question.identity.items() if name != "rules"},
            "procedure": SURVEY,
            "options": {"captime": captime, "instances": instances},
        },
    )


def table_of(path: Path, name: str, captime: float) -> RuntimeTable:
    """Return what a ledger of a survey has measured, as a table: only positions on which every run is known.

    A run that was cut is known as "at least the captime"; one that failed never finishes. A run that was given up (by
    the wall-clock guard, or lost too often) is known neither way, and a table has no word for that: its instance is
    left out, and a note says how many there are.
    """
    measured, unfinished = measured_runs(path, name, captime)
    given_up = ~np.isnan(unfinished)
    if not given_up.any():
        return measured
    known = np.flatnonzero(~given_up.any(axis=0))
    if len(known) == 0:
        raise ScenarioError(
            f"{path}: on every instance some run was given up by the wall-clock guard or lost too often, so that no "
            'table can be made; if the program waits rather than computes, measure it with clock = "wall"'
        )
    left_out = measured.n_instances - len(known)
    note = (
        f"{left_out} instances are left out because {np.count_nonzero(given_up)} runs on them were given up by the "
        "wall-clock guard or lost; what is simulated on this table is about the others"
    )
    return RuntimeTable.build(
        name,
        measured.configs,
        [measured.instances[position] for position in known.tolist()],
        np.ascontiguousarray(measured.seconds[:, known]),
        recorded_limit=captime,
        notes=[*measured.notes, note],
    )


def measured_runs(path: Path, name: str, captime: float, *, unbroken: bool = False) -> tuple[RuntimeTable, FloatArray]:
    """Return all runs of a survey on the positions where none is missing, those that were given up included.

    Args:
        path: The ledger.
        name: Of the table.
        captime: For every run, in seconds.
        unbroken: Only positions before the first one with a missing run. In a survey that was stopped, long runs are
            missing more often than short ones, so the other positions behind it are no random choice of instances.

    Returns:
        The table, in which a given-up run stands as cut, and of the same shape the CPU seconds after which given-up
        runs were last seen unfinished; not a number for all other runs.
    """
    with LedgerReader(path) as reader:
        configs = [config.name for config in reader.configs]
        samples, columns = reader.sample_rows(), reader.outcomes()
        clock = reader.scenario.get("clock", "cpu")
    seconds, unfinished = _seconds(columns, len(configs), captime)
    broken = np.isnan(seconds).any(axis=0)
    whole = np.flatnonzero(~np.maximum.accumulate(broken) if unbroken else ~broken)
    if len(whole) == 0:
        raise ScenarioError(
            f"{path}: there is no instance yet on which every configuration was run; continue measuring"
        )
    named = {sample.position: sample.instance for sample in samples}
    notes = [f"measured by captime measure; captime {captime:g} s on the {clock} clock"]
    if len(whole) < len(samples):
        notes.append(f"{len(samples) - len(whole)} instances are left out because some of their runs are missing")
    table = RuntimeTable.build(
        name,
        configs,
        [named[position] for position in whole.tolist()],
        np.ascontiguousarray(seconds[:, whole]),
        recorded_limit=captime,
        notes=notes,
    )
    return table, unfinished[:, whole]


def _seconds(columns: Columns, n_configs: int, captime: float) -> tuple[FloatArray, FloatArray]:
    """By configuration and position: runtimes, not a number where nothing is known; when given-up runs were last seen.

    A given-up run has the captime as its runtime: it is unfinished, and when it would have ended is not known.
    """
    status, runtime = columns["status"], columns["runtime"]

    def those(wanted: Callable[[Meaning], bool]) -> BoolArray:
        return which_mean(status, wanted) & ~columns["orphan"]

    answered, given_up = those(lambda each: each.answered), those(lambda each: each.unfinished and each.final)
    value = np.full(len(status), np.nan)
    value[answered] = np.minimum(runtime, captime)[answered]
    # A run that was stopped before its captime was interrupted, and is made again; it says nothing here.
    cut = those(lambda each: each.counts and each.unfinished and not each.final)
    value[cut & (runtime >= captime)] = captime
    value[those(lambda each: each.never)] = np.inf
    value[given_up] = captime
    known = ~np.isnan(value)
    seconds = np.full((n_configs, int(columns["position"].max(initial=-1)) + 1), np.nan)
    seconds[columns["config"][known], columns["position"][known]] = value[known]
    unfinished = np.full(seconds.shape, np.nan)
    given_up &= runtime < captime
    unfinished[columns["config"][given_up], columns["position"][given_up]] = runtime[given_up]
    return seconds, unfinished
