"""`captime explain`: which settings carry the gain of one configuration over another."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from captime.arrays import FloatArray
from captime.campaign.assembly import Assembly
from captime.campaign.explain import (
    Ablation,
    Group,
    SettingsDifference,
    ablation,
    difference_between,
    is_decided,
    on_candidates,
    order_of,
    path_of,
    places_of,
    trials_of,
)
from captime.campaign.identity import with_seed_on_record
from captime.campaign.judge_candidates import listed_question
from captime.campaign.measurement import DECIDED, Compared, Decided, survey_of
from captime.campaign.validation import on_files, on_values, usual_captime
from captime.certificate import check_delta
from captime.cli import AsJson, Captime, Jobs, Quiet, ScenarioFile, Values
from captime.cli.shared import StopRequest, asking_to_stop, progress_of, say, say_missing, scenario_on_record
from captime.cli.validate import pattern_typed, row_named, values_typed
from captime.errors import ScenarioError, StorageTrouble
from captime.ledger import ConfigRow, LedgerReader
from captime.programs.protocol import Configuration
from captime.report.charts.mpl import check_picture_path, print_charts
from captime.report.page import write_report
from captime.report.views.importance import SUFFIX, view_of
from captime.report.words import STOPPED, cpu_time, printable, rounded_down, rounded_up, surely
from captime.scenario import Scenario, load_scenario
from captime.scenario.identity import plain, scenario_hash
from captime.spaces.values import text_of
from captime.utilities.formula import parse_duration

# Which settings carry the gain: as a sentence and a table, and as one JSON object.

_NAMES_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Explained:
    """An ablation path with what there is to tell about it.

    Attributes:
        first: Name of the configuration it starts from.
        last: Name of the one it leads to.
        difference: What differs between them.
        steps: Which groups of settings change at each step.
        found: The intervals.
        least: A gain below this is called none.
        n_choice: On how many instances the order was chosen.
        n_met: How many instances were left out because the campaign had met them.
        stopped: Why the runs ended.
        n_runs: How many there were, those that chose the order included.
        cpu_seconds: What they cost.
        clock: Of the seconds, `cpu` or `wall`.
        utility: What an answer is worth, as text.
        campaign: Identity of the campaign's ledger.
        ledgers: Where the runs are.
    """

    first: str
    last: str
    difference: SettingsDifference
    steps: Sequence[tuple[Group, ...]]
    found: Ablation
    least: float
    n_choice: int
    n_met: int
    stopped: str
    n_runs: int
    cpu_seconds: float
    clock: str
    utility: str
    campaign: str
    ledgers: Sequence[Path]

    def settings_of(self, step: int) -> list[str]:
        """Return the names of the settings that change at a step, counted from 0."""
        return [name for group in self.steps[step] for name in group]

    @property
    def named(self) -> list[str]:
        """The settings that the sentence names."""
        return [name for step in range(self.found.named) for name in self.settings_of(step)]


def statement_of(told: Explained) -> str:
    """Return the answer as one or two sentences."""
    found, gain = told.found, told.found.gain
    sure = surely(found.delta)
    first, last = printable(told.first), printable(told.last)
    interval = f"{rounded_down(gain.low)} to {rounded_up(gain.high)}"
    if gain.high < told.least:
        return f"{sure}, {last} exceeds {first} by at most {rounded_up(gain.high)}: there is no gain to explain."
    if gain.low <= 0.0:
        return (
            f"{sure}, the difference between {last} and {first} is {interval}, so that no gain is shown yet; more "
            "instances or a larger --budget may show one."
        )
    count, whole = len(told.named), told.difference.n_settings
    if count == whole:
        which = "its only changed setting" if whole == 1 else f"all {whole} changed settings together"
        return f"{sure}, {last} exceeds {first} by {interval}, and {which} ({_listed(told.named)}) carry it."
    these = f"this 1 of {whole} settings carries" if count == 1 else f"these {count} of {whole} settings carry"
    share = found.share
    return f"{sure}, {these} {_percent(share.low, share.high)} of the gain of {interval}: {_listed(told.named)}."


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(printable, names[:_NAMES_SHOWN]))
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and {len(names) - _NAMES_SHOWN} more"


def _percent(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return "an unknown share"
    if high is None:
        return f"at least {100 * (low or 0.0):.0f} %"
    if low is None:
        return f"at most {100 * high:.0f} %"
    return f"between {100 * low:.0f} and {100 * high:.0f} %"


def explained_json(told: Explained) -> dict[str, object]:
    """Return everything, in words that JSON knows."""
    found = told.found
    cumulative = [*found.shares, None]
    return {
        "statement": statement_of(told),
        "from": told.first,
        "to": told.last,
        "n_settings": told.difference.n_settings,
        "settings": told.named,
        "share": {"low": found.share.low, "high": found.share.high, "seen": found.share.seen},
        "gain": asdict(found.gain),
        "delta": found.delta,
        "n_instances": found.n_instances,
        "n_choice": told.n_choice,
        "n_met": told.n_met,
        "steps": [
            {
                "settings": {name: [told.difference.start.get(name), told.difference.goal.get(name)] for name in names},
                **asdict(found.steps[place]),
                "share_so_far": {"low": 1.0, "high": 1.0, "seen": 1.0} if share is None else asdict(share),
            }
            for place, share in enumerate(cumulative)
            for names in [told.settings_of(place)]
        ],
        "utility": told.utility,
        "stopped": told.stopped,
        "runs": told.n_runs,
        "cpu_seconds": told.cpu_seconds,
        "campaign": told.campaign,
        "ledgers": [str(path) for path in told.ledgers],
    }


def print_explained(told: Explained) -> None:
    """Print it for people."""
    console = Console(highlight=False, markup=False)
    console.print(statement_of(told), style="bold", soft_wrap=True)
    grid = Table()
    for heading in ("step", "setting", f"from {printable(told.first)}", f"to {printable(told.last)}"):
        grid.add_column(heading)
    for heading in ("gain of the step", "share of the gain so far"):
        grid.add_column(heading, justify="right")
    for place, worth in enumerate(told.found.steps):
        names = told.settings_of(place)
        shown = (
            names if len(names) <= _NAMES_SHOWN else [*names[:_NAMES_SHOWN], f"and {len(names) - _NAMES_SHOWN} more"]
        )
        share = "100 %" if place == len(told.found.shares) else _range(told, place)
        grid.add_row(
            str(place + 1),
            "\n".join(map(printable, shown)),
            "\n".join(_value(told.difference.start, name) for name in names[:_NAMES_SHOWN]),
            "\n".join(_value(told.difference.goal, name) for name in names[:_NAMES_SHOWN]),
            f"{rounded_down(worth.low)} to {rounded_up(worth.high)}",
            share,
        )
    console.print(grid)
    why = "it is known closely enough" if told.stopped == DECIDED else STOPPED.get(told.stopped, told.stopped)
    lines = [
        (
            f"cost: {cpu_time(told.cpu_seconds, told.clock)}, {told.n_runs:,} runs; the order was chosen on "
            f"{told.n_choice:,} instances, and everything above is about {told.found.n_instances:,} others"
        ),
        f"stopped because {why}",
        *(f"ledger: {printable(str(path))}" for path in told.ledgers),
    ]
    if told.n_met:
        lines.append(f"{told.n_met:,} instances were left out because the campaign had been run on them")
    for line in lines:
        console.print(line, soft_wrap=True)


def _range(told: Explained, place: int) -> str:
    if told.found.gain.low <= 0.0:
        return "–"
    share = told.found.shares[place]
    low, high = (None if each is None else f"{100 * each:.0f} %" for each in (share.low, share.high))
    return f"{low or '…'} to {high or '…'}"


def _value(settings: Mapping[str, Any], name: str) -> str:
    return printable(text_of(settings[name])) if name in settings else "(not there)"


# `captime explain`: which of the settings that a campaign has changed carry the gain.

# Without a budget, this many seconds at least; and of a stream without an end, this many instances at most.
_LEAST_BUDGET, _MOST_INSTANCES = 60.0, 100_000
# The order of the path is chosen within this share of the budget.
_CHOICE_SHARE = 1.0 / 3.0


def explain_command(
    ledger: Annotated[Path, typer.Argument(help="The ledger of a campaign.")],
    *,
    first: Annotated[
        str, typer.Option("--from", metavar="NAME", help="Where the path starts: the default, or another one.")
    ] = "default",
    last: Annotated[
        str, typer.Option("--to", metavar="NAME", help="Where the path ends: leader is the recommended one.")
    ] = "leader",
    instances: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="Held-out files; by default those that the campaign has not used."),
    ] = None,
    values: Values = None,
    scenario: ScenarioFile = None,
    carry: Annotated[
        float, typer.Option(min=0.01, max=1.0, help="Name the first settings that carry about this share of the gain.")
    ] = 0.9,
    within: Annotated[
        float, typer.Option(min=0.0, help="Stop once the share of the named settings is known this closely.")
    ] = 0.15,
    least: Annotated[float, typer.Option(min=0.0, help="Smallest gain worth explaining.")] = 0.01,
    steps: Annotated[
        int, typer.Option(min=1, help="Most settings with a step of their own; the rest change together.")
    ] = 6,
    choose_on: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of instances that the order is chosen on.")
    ] = 20,
    captime: Captime = None,
    delta: Annotated[float, typer.Option(help="Allowed probability that any interval is wrong.")] = 0.1,
    budget: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="CPU time of all runs; by default as much as the campaign has spent."),
    ] = None,
    jobs: Jobs = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the steps: a .png, .pdf or .svg file.")
    ] = None,
    quiet: Quiet = False,
    as_json_object: AsJson = False,
) -> None:
    """Show which settings carry the gain: a path from the default to the winner, with bounds.

    Run the same command again to resume. The result is kept beside the ledger, where `captime report` finds it. Exit
    code 0: the share of the named settings is known closely enough, or there is no gain. 3: stopped early; what is
    printed is valid.
    """
    check_delta(delta)
    if plot is not None:
        check_picture_path(plot)
    with LedgerReader(ledger) as reader:
        say_missing(reader.missing)
        certified = reader.last_certificate()
        if certified is None:
            raise ScenarioError(f"{ledger} has no certificate yet, so no configuration is recommended; resume it first")
        known, samples, campaign_id = reader.configs, reader.sample_rows(), reader.campaign_id
        path, seed = scenario or scenario_on_record(reader, needed=True), reader.scenario.get("seed")
    rows = [
        row_named(name, known, certified.certificate.config, option)
        for name, option in ((first, "--from"), (last, "--to"))
    ]
    campaign = with_seed_on_record(load_scenario(path), seed)
    differing = difference_between(rows[0], rows[1], None if campaign.proposer is None else campaign.proposer.space)
    tested = _tested(campaign, instances, values)
    limit = max(_LEAST_BUDGET, certified.cpu_seconds) if budget is None else parse_duration(budget, "--budget")
    seconds = None if captime is None else parse_duration(captime, "--captime")
    n_choice = choose_on if len(differing.groups) > 1 else 0
    places = places_of(campaign, tested, samples, n_choice)
    with asking_to_stop() as asked:
        work = _Work(ledger, rows[0], seconds, jobs, asked, show=not (quiet or as_json_object))
        path_steps: list[tuple[Group, ...]] = [(group,) for group in differing.groups]
        spent, runs, ledgers = 0.0, 0, []
        if n_choice:
            trials = [Configuration(name, settings) for name, settings in trials_of(differing).items()]
            chosen = work.compare(
                places.choice, trials, "choice", _all, instances=places.n_choice, cpu=_CHOICE_SHARE * limit
            )
            means = ((chosen.seen.low + chosen.seen.high) / 2.0).mean(axis=1)
            path_steps = order_of(differing, [each.name for each in trials], means, steps)
            spent, runs = chosen.seen.cpu_seconds, chosen.seen.n_runs
            ledgers.append(chosen.ledger)

        def decided(low: FloatArray, high: FloatArray) -> bool:
            return is_decided(low, high, delta, carry=carry, within=within, least=least)

        bounded = work.compare(
            places.bounds,
            path_of(differing, path_steps),
            "path",
            decided,
            instances=places.n_bounds or _MOST_INSTANCES,
            cpu=max(limit - spent, 1e-9),
        )
    found = ablation(bounded.seen.low, bounded.seen.high, delta, carry)
    told = Explained(
        rows[0].name,
        rows[1].name,
        differing,
        path_steps,
        found,
        least,
        places.n_choice if n_choice else 0,
        places.n_met,
        bounded.seen.stopped,
        runs + bounded.seen.n_runs,
        spent + bounded.seen.cpu_seconds,
        bounded.clock,
        str(campaign.utility),
        campaign_id,
        [*ledgers, bounded.ledger],
    )
    _keep(told, ledger.with_suffix(SUFFIX), plot)
    if as_json_object:
        typer.echo(json.dumps(explained_json(told), indent=2))
    else:
        print_explained(told)
        typer.echo(f"kept: {printable(str(ledger.with_suffix(SUFFIX)))}; `captime report` shows it")
    if asked.signal is not None:
        raise typer.Exit(128 + asked.signal)
    raise typer.Exit(0 if decided(bounded.seen.low, bounded.seen.high) else 3)


def _all(low: FloatArray, high: FloatArray) -> bool:  # noqa: ARG001 (the order is chosen on all instances meant for it)
    return False


def _tested(campaign: Scenario, instances: str | None, values: str | None) -> Scenario:
    if instances is not None and values is not None:
        raise ScenarioError("--instances and --values both say what is held out; expected one of them")
    if instances is not None:
        return on_files(campaign, pattern_typed(instances), "--instances")
    return campaign if values is None else on_values(campaign, values_typed(values), "--values")


@dataclass(frozen=True, slots=True)
class _Made:
    """Runs that were made for a purpose, and where they are."""

    seen: Compared
    ledger: Path
    clock: str


@dataclass(frozen=True, slots=True)
class _Work:
    """What the two comparisons have in common.

    Attributes:
        ledger: Of the campaign; theirs stand beside it.
        own: A configuration of the campaign, for the command it may have of its own.
        captime: Of every run; None for the usual one.
        jobs: Number of runs at once; None for the scenario's.
        asked: Whether a signal has asked to stop.
        show: Whether progress is shown.
    """

    ledger: Path
    own: ConfigRow
    captime: float | None
    jobs: int | None
    asked: StopRequest
    show: bool

    def compare(
        self,
        place: Scenario,
        candidates: Sequence[Configuration],
        purpose: str,
        decided: Decided,
        *,
        instances: int,
        cpu: float,
    ) -> _Made:
        """Run the candidates until enough is known."""
        wishes = place.wishes.model_copy(
            update={"procedure": "race", "options": {}, "stop": place.wishes.stop.model_copy(update={"gamma": None})}
        )
        spec = on_candidates(replace(place, wishes=wishes), candidates, self.own).build()
        question = listed_question(spec)
        seconds = usual_captime(question) if self.captime is None else self.captime
        number = scenario_hash(plain(survey_of(question, seconds, instances).identity))[:8]
        path = self.ledger.with_suffix(f".explain-{purpose}-{number}.ledger")
        campaign = Assembly.of(spec, path, question, jobs=self.jobs).within(cpu=cpu, anytime=True)
        title = f"captime explain {self.ledger.name}: {purpose}"
        with (
            campaign.slots(self.asked) as at_work,
            progress_of(campaign, title, quiet=not self.show, n_runs=len(candidates) * instances) as view,
        ):
            seen = at_work.compare(view, decided, captime=seconds, instances=instances)
        if seen.trouble is not None:
            say(f"captime: {seen.trouble}")
        return _Made(seen, path, question.clock)


def _keep(told: Explained, path: Path, plot: Path | None) -> None:
    """Write the result beside the ledger, and the picture where it was asked for."""
    numbers = explained_json(told)
    try:
        write_report(json.dumps(numbers, indent=2) + "\n", path)
    except OSError as error:
        raise StorageTrouble(f"{path} cannot be written ({error.strerror}); the runs are in their ledgers") from None
    if plot is not None:
        print_charts(view_of(numbers).shown(), plot)
