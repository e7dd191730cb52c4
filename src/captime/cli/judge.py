"""`captime judge`: incumbents of other tuners, compared on held-out instances."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from glob import glob
from math import inf
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from captime.arrays import FloatArray, IntArray
from captime.campaign.assembly import Assembly
from captime.campaign.identity import as_begun, with_recorded_seed
from captime.campaign.judge_candidates import (
    JudgedCandidate,
    candidates_of,
    gain_over_default,
    listed_question,
    race_budget,
    race_of,
    without_met,
)
from captime.campaign.measurement import DECIDED
from captime.campaign.result import CampaignResult
from captime.campaign.validation import Worth, on_files, on_generated, on_values, usual_captime
from captime.cli import AsJson, Jobs, Quiet, Values
from captime.cli.shared import StopRequest, asking_to_stop, progress_of, say
from captime.cli.validate import pattern_typed, values_typed
from captime.errors import ScenarioError
from captime.ledger import LedgerReader
from captime.ledger.reading import which_mean
from captime.report.campaigned import campaign_json, summary_and_table
from captime.report.words import STOPPED, cpu_time, printable, rounded_down, rounded_up, surely
from captime.scenario import Scenario, load_scenario
from captime.tuners import TunerResult, read_incumbents
from captime.utilities.formula import parse_duration

# What a comparison of tuners came to: as a sentence and a table, and as one JSON object.


@dataclass(frozen=True, slots=True)
class Gain:
    """By how much the winner exceeds the default.

    Attributes:
        worth: The difference of the expected utilities, seen and bounded.
        n_instances: On how many instances both were run.
        stopped: Why those runs ended.
        n_runs: How many there were.
        cpu_seconds: What they cost.
        captime: Of every run, in seconds.
        ledger: Where they are.
    """

    worth: Worth
    n_instances: int
    stopped: str
    n_runs: int
    cpu_seconds: float
    captime: float
    ledger: Path


@dataclass(frozen=True, slots=True)
class Judged:
    """The race of the candidates, with what there is to tell about it.

    Attributes:
        candidates: The default first.
        result: Of the race.
        gain: Of the winner over the default; None if the default won, or nothing was left for it.
        delta: Allowed probability that anything said is wrong.
        n_met: How many instances were left out because a tuner had met them.
        files: What the candidates were read from.
    """

    candidates: Sequence[JudgedCandidate]
    result: CampaignResult
    gain: Gain | None
    delta: float
    n_met: int
    files: Sequence[Path]

    @property
    def winner(self) -> JudgedCandidate:
        """The recommended one."""
        return self.candidates[self.result.certificate.config]

    @property
    def default(self) -> JudgedCandidate:
        """The configuration that all tuners were to improve."""
        return self.candidates[0]

    def runs(self) -> tuple[IntArray, IntArray]:
        """Return how many runs each candidate had in the race, and how many of them answered."""
        with LedgerReader(self.result.record) as reader:
            columns = reader.outcomes()
        counted = which_mean(columns["status"], lambda meaning: meaning.counts) & ~columns["orphan"]
        answered = counted & which_mean(columns["status"], lambda meaning: meaning.answered)
        count = len(self.candidates)
        return (
            np.bincount(columns["config"][counted], minlength=count),
            np.bincount(columns["config"][answered], minlength=count),
        )


def judged_json(told: Judged) -> dict[str, object]:
    """Return everything, in words that JSON knows."""
    runs, answered = told.runs()
    gain = told.gain
    return {
        "best": told.winner.name,
        "default": told.default.name,
        "statement": statement_of(told),
        "delta": told.delta,
        "candidates": [
            {
                "name": each.name,
                "settings": dict(each.configuration.settings),
                "sources": [
                    {"tuner": result.tuner, "file": str(result.path), "about": about} for result, about in each.sources
                ],
                "filled": list(each.filled),
                "dropped": list(each.dropped),
                "runs": int(runs[place]),
                "answered": int(answered[place]),
                "mean_utility": _number(float(told.result.means[place])),
            }
            for place, each in enumerate(told.candidates)
        ],
        "gain": None
        if gain is None
        else {
            **asdict(gain.worth),
            "n_instances": gain.n_instances,
            "runs": gain.n_runs,
            "cpu_seconds": gain.cpu_seconds,
            "captime": gain.captime,
            "stopped": gain.stopped,
            "ledger": str(gain.ledger),
        },
        "n_met": told.n_met,
        "race": campaign_json(told.result, *summary_and_table(told.result)),
    }


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value


def statement_of(told: Judged) -> str:
    """Return the answer as one sentence."""
    held = told.result.certificate
    name, default = printable(told.winner.name), printable(told.default.name)
    count = len(told.candidates)
    if held.epsilon >= 1.0:
        return f"Nothing is certified yet; {name} is only the first guess among {count} candidates."
    sure = surely(told.delta)
    near = f"within {rounded_up(held.epsilon)} of the best of these {count} candidates"
    if told.winner is told.default:
        return f"{sure}, {name} is {near}: no incumbent is better than the default by more than that."
    if told.gain is None:
        return f"{sure}, {name} is {near}. By how much it exceeds {default} was not measured."
    worth = told.gain.worth
    if worth.low > 0:
        more = f"exceeds that of {default} by {rounded_down(worth.low)} to {rounded_up(worth.high)}"
    elif worth.high < 0:
        more = f"is {rounded_down(-worth.high)} to {rounded_up(-worth.low)} below that of {default}"
    else:
        more = (
            f"differs from that of {default} by {rounded_down(worth.low)} to {rounded_up(worth.high)}, so that it is "
            "not shown to be better"
        )
    return f"{sure}, {name} is {near}, and its expected utility {more}."


def print_judged(told: Judged) -> None:
    """Print it for people."""
    console = Console(highlight=False, markup=False)
    console.print(statement_of(told), style="bold", soft_wrap=True)
    runs, answered = told.runs()
    shown = Table()
    for heading in ("candidate", "recommended by", "runs", "answered", "mean utility"):
        shown.add_column(heading, justify="right" if heading in ("runs", "answered", "mean utility") else "left")
    for place, each in enumerate(told.candidates):
        mean = float(told.result.means[place])
        shown.add_row(
            printable(each.name) + (" *" if each is told.winner else ""),
            printable(_source(each)),
            f"{runs[place]:,}",
            f"{answered[place]:,}",
            "–" if np.isnan(mean) else f"{mean:.4f}",
        )
    console.print(shown)
    summary, _ = summary_and_table(told.result)
    for line in (*_notes(told, summary.warnings), *_cost(told)):
        console.print(line, soft_wrap=True)
    console.print("This rests on:", style="dim")
    for assumed in summary.rests_on:
        console.print(f"  - {printable(assumed.words)}", soft_wrap=True)


def _source(candidate: JudgedCandidate) -> str:
    if not candidate.sources:
        return "the scenario"
    return "; ".join(f"{result.tuner}, {result.path.name}: {about}" for result, about in candidate.sources)


def _notes(told: Judged, warnings: Sequence[str]) -> list[str]:
    found = [f"warning: {each}" for each in warnings]
    for each in told.candidates:
        if each.filled:
            found.append(
                f"note: {printable(each.name)}: its tuner does not name {printable(', '.join(each.filled))}; the "
                "default's values stand for them."
            )
        if each.dropped:
            found.append(
                f"note: {printable(each.name)}: {printable(', '.join(each.dropped))} named by its tuner, but not "
                "active with its other settings; left out."
            )
    if told.n_met:
        found.append(f"note: {told.n_met:,} instances were left out because a tuner was run on them.")
    return found


def _cost(told: Judged) -> list[str]:
    result, gain = told.result, told.gain
    clock = result.question.clock
    lines = [
        (
            f"race: {cpu_time(result.cpu_seconds, clock)}, {int(result.outcome.runs.sum()):,} runs; stopped because "
            f"{STOPPED.get(result.outcome.stopped, result.outcome.stopped)}; ledger {printable(str(result.ledger))}"
        )
    ]
    if gain is not None:
        why = "it is known closely enough" if gain.stopped == DECIDED else STOPPED.get(gain.stopped, gain.stopped)
        lines.append(
            f"gain: {cpu_time(gain.cpu_seconds, clock)}, {gain.n_runs:,} runs on {gain.n_instances:,} instances; "
            f"stopped because {why}; ledger {printable(str(gain.ledger))}"
        )
    return lines


# `captime judge`: which configuration that other tuners recommend is best, and by how much over the default.

GOAL_REACHED = ("epsilon", "single")
# Of a stream without an end, the comparison with the default takes at most this many instances.
_MOST_INSTANCES = 100_000


def judge_command(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE…",
            help="Optuna's storage (SQLite or journal), SMAC3's runhistory.json, irace's log, or a CSV of settings.",
        ),
    ],
    *,
    scenario: Annotated[
        Path, typer.Option(metavar="FILE", help="How the program is run, and what an answer is worth.")
    ] = Path("scenario.toml"),
    instances: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Files that no tuner was run on; the scenario's by default.")
    ] = None,
    values: Values = None,
    skip: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="With a generator: number of instances that the tuners have used."),
    ] = None,
    tuned_on: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Files that the tuners were run on; they are left out. May be repeated."),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(min=1, help="Best configurations per file; by default the incumbent, and all rows of a CSV."),
    ] = None,
    study: Annotated[
        str | None, typer.Option(metavar="NAME", help="Study to read, if Optuna's storage has several.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Target epsilon, and width of the interval over the default.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Allowed probability that any statement is wrong; the scenario's by default.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(metavar="TIME", help="CPU time of all runs; the scenario's stop.cpu by default.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the race is recorded; beside the scenario by default.")
    ] = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json_object: AsJson = False,
) -> None:
    """Race incumbents of other tuners on held-out instances, and compare the winner with the default.

    Run the same command again to resume. Exit code 0: the best is certified to epsilon, and its gain over the default
    is known as closely. 3: stopped early; what is printed is valid.
    """
    asked_for = load_scenario(scenario)
    results = [read_incumbents(each, top, study) for each in files]
    out = ledger or asked_for.folder / f"{asked_for.stem}.judge.ledger"
    seeded = with_recorded_seed(asked_for, out)
    candidates = candidates_of(seeded, results)
    tested, met = _held_out(seeded, results, instances=instances, values=values, skip=skip, tuned_on=tuned_on or [])
    if met:
        say(f"captime: {len(met):,} instances are left out, such as {met[0]!r}: a tuner was run on them.")
    whole = delta if delta is not None else asked_for.wishes.delta
    race = race_of(tested, candidates, delta=whole, epsilon=epsilon)
    limit = asked_for.wishes.stop.cpu if budget is None else parse_duration(budget, "--budget")
    show = not (quiet or as_json_object)
    with asking_to_stop() as asked:
        terms = _JudgeTerms(out, whole, jobs, asked, show=show)
        result = _raced(terms, race, scenario, inf if limit is None else limit)
        winner, default = candidates[result.certificate.config], candidates[0]
        gain = None
        if winner is not default and result.trouble is None and not asked():
            left = inf if limit is None else limit - result.cpu_seconds
            gain = _gain(terms, race, (winner, default), len(candidates), left)
    told = Judged(candidates, result, gain, whole, len(met), tuple(each.path for each in results))
    if as_json_object:
        typer.echo(json.dumps(judged_json(told), indent=2))
    else:
        print_judged(told)
    if result.trouble is not None:
        raise result.trouble
    if asked.signal is not None:
        raise typer.Exit(128 + asked.signal)
    known = winner is default or (gain is not None and gain.stopped == DECIDED)
    raise typer.Exit(0 if result.outcome.stopped in GOAL_REACHED and known else 3)


def _held_out(
    scenario: Scenario,
    results: Sequence[TunerResult],
    *,
    instances: str | None,
    values: str | None,
    skip: int | None,
    tuned_on: Sequence[str],
) -> tuple[Scenario, list[str]]:
    """Return the scenario on instances that chose none of the candidates, and those that were left out for it."""
    given = {"--instances": instances, "--values": values, "--skip": skip}
    named = [option for option, value in given.items() if value is not None]
    if len(named) > 1:
        raise ScenarioError(f"{' and '.join(named)} both say which instances to run on; expected one of them")
    if skip is not None:
        return on_generated(scenario, skip, "--skip"), []
    if instances is not None:
        scenario = on_files(scenario, pattern_typed(instances), "--instances")
    elif values is not None:
        scenario = on_values(scenario, values_typed(values), "--values")
    elif scenario.wishes.instances.generator is not None:
        raise ScenarioError(
            "nothing says which generated instances are held out; if the tuners were run on the first N of them, pass "
            "--skip N (0 if on none), or name files with --instances 'test/*.cnf'"
        )
    else:
        silent = [each.path for each in results if each.instances is None]
        if silent and not tuned_on:
            raise ScenarioError(
                f"{silent[0]} does not tell which instances its tuner was run on, so nothing says which are held out; "
                "name held-out ones with --instances 'test/*.cnf', or those of the tuner with --tuned-on 'train/*.cnf'"
            )
    return without_met(scenario, [name for each in results for name in each.instances or ()], _files(tuned_on))


def _files(patterns: Sequence[str]) -> list[Path]:
    found = []
    for pattern in patterns:
        typed = pattern_typed(pattern, "--tuned-on")
        found += [Path(name) for name in glob(typed, recursive=True) if Path(name).is_file()]  # noqa: PTH207 (a pattern)
    return found


@dataclass(frozen=True, slots=True)
class _JudgeTerms:
    """What the race and the comparison with the default have in common.

    Attributes:
        ledger: Of the race; the other stands beside it.
        delta: Of the whole statement.
        jobs: Number of runs at once; None for the scenario's.
        asked: Whether a signal has asked to stop.
        show: Whether progress is shown.
    """

    ledger: Path
    delta: float
    jobs: int | None
    asked: StopRequest
    show: bool


def _raced(terms: _JudgeTerms, race: Scenario, file: Path, cpu: float) -> CampaignResult:
    spec = as_begun(race, terms.ledger).build()
    question = replace(listed_question(spec), source=str(file.absolute()))
    campaign = Assembly.of(spec, terms.ledger, question, jobs=terms.jobs).within(cpu=race_budget(cpu))
    with (
        campaign.slots(terms.asked) as at_work,
        progress_of(campaign, f"captime judge {file.name}", quiet=not terms.show) as view,
    ):
        return at_work.run(view)


def _gain(
    terms: _JudgeTerms, race: Scenario, pair: tuple[JudgedCandidate, JudgedCandidate], n_candidates: int, cpu: float
) -> Gain | None:
    """Compare the winner with the default; None if no CPU time is left for it."""
    if cpu <= 0:
        return None
    delta = terms.delta
    word = re.sub(r"[^A-Za-z0-9_]+", "-", pair[0].name).strip("-")[:40]
    path = terms.ledger.with_suffix(f".gain-{word}.ledger")
    two = replace(race, candidates=tuple(each.configuration for each in pair))
    spec = as_begun(two, path).build()
    question = listed_question(spec)
    seconds = usual_captime(question)
    within = question.epsilon

    def decided(low: FloatArray, high: FloatArray) -> bool:
        worth = gain_over_default(low, high, n_candidates, delta)
        return worth.high - worth.low <= within

    length = question.stream.length or _MOST_INSTANCES
    campaign = Assembly.of(spec, path, question, jobs=terms.jobs).within(cpu=cpu)
    title = f"captime judge: {printable(pair[0].name)} and {printable(pair[1].name)}"
    with (
        campaign.slots(terms.asked) as at_work,
        progress_of(campaign, title, quiet=not terms.show, n_runs=2 * length) as view,
    ):
        seen = at_work.compare(view, decided, captime=seconds, instances=length)
    if seen.trouble is not None:
        say(f"captime: {seen.trouble}")
    worth = gain_over_default(seen.low, seen.high, n_candidates, delta)
    return Gain(worth, seen.n_instances, seen.stopped, seen.n_runs, seen.cpu_seconds, seconds, path)
