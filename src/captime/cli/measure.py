"""`captime measure`: every configuration on every instance up to a captime, written as a table for simulations."""

import json
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from captime.campaign import CampaignResult, table_of
from captime.campaign.assembly import Assembly
from captime.campaign.identity import with_recorded_seed
from captime.campaign.measurement import check_sampling
from captime.certificate import Population
from captime.cli import AsJson, Jobs, Oversubscribe, Quiet
from captime.cli.shared import COMPLETE, asking_to_stop, progress_of, say_why
from captime.errors import ScenarioError
from captime.ledger import LedgerReader
from captime.procedures.survey import SURVEY
from captime.programs.protocol import Configuration
from captime.report.words import cpu_time, message, printable
from captime.scenario import Scenario, load_scenario
from captime.sources import RuntimeTable
from captime.sources.formats.npz import write_npz
from captime.spaces import Proposer
from captime.utilities.formula import parse_duration


def measure_command(
    scenario: Annotated[Path, typer.Argument(help="The scenario, a TOML file.")],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="TABLE.npz", help="The table to write.")],
    captime: Annotated[
        str | None, typer.Option(metavar="TIME", help="Captime of every run; the scenario's target.ceiling by default.")
    ] = None,
    instances: Annotated[
        int | None, typer.Option(min=1, help="Number of instances; required with a generator.")
    ] = None,
    draws: Annotated[
        int | None, typer.Option(min=1, help="On a space: the default and this many random configurations.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where every run is recorded; TABLE.measured.ledger by default.")
    ] = None,
    jobs: Jobs = None,
    oversubscribe: Oversubscribe = False,
    quiet: Quiet = False,
    as_json_object: AsJson = False,
) -> None:
    """Run all configurations on all instances, and write a table for `simulate`. Run it again to resume.

    Exit code 0: the table is complete. 3: stopped early; the table has the instances on which nothing is missing.
    """
    if out.suffix != ".npz":
        raise ScenarioError(
            f"--out is {str(out)!r}; tables are written as .npz files, so say {out.with_suffix('.npz')}"
        )
    path = ledger or _ledger_beside(out)
    # Nothing is claimed here, so a table measured before there were two claims is resumed.
    asked_for = replace(with_recorded_seed(load_scenario(scenario), path), recorded_population=Population.DRAWN)
    if draws is not None:
        asked_for = replace(asked_for, candidates=_drawn(asked_for.proposer, draws, scenario))
    spec = asked_for.build()
    question = replace(spec.question, proposer=None)
    seconds = question.ceiling if captime is None else parse_duration(captime, "--captime")
    campaign = Assembly.of(spec, path, question, jobs=jobs, oversubscribe=oversubscribe)
    check_sampling(question)
    n_runs = len(question.configs) * min((n for n in (question.stream.length, instances) if n), default=0)
    with asking_to_stop() as asked, campaign.slots(asked) as at_work:
        title = f"captime measure {scenario.name}"
        with progress_of(campaign, title, quiet=quiet or as_json_object, n_runs=n_runs) as view:
            result = at_work.measure(view, captime=seconds, instances=instances)
        # Before the cluster is closed, which may take a while.
        if result.trouble is not None:
            raise result.trouble
        stopped = result.outcome.stopped
        say_why(stopped)
        table = table_of(path, out.stem, seconds)
        write_npz(table, out)
        _show(result, out, path, table, as_json_object=as_json_object)
        if not as_json_object:
            typer.echo(f"Next: {_next(asked_for, scenario, out, drawn=draws is not None)}")
    if asked.signal is not None:
        raise typer.Exit(128 + asked.signal)
    raise typer.Exit(0 if stopped == COMPLETE else 3)


def _ledger_beside(table: Path) -> Path:
    """Return the ledger of a table: never the name that `captime run` gives to the ledger of a scenario."""
    earlier = table.with_suffix(".ledger")
    if earlier.is_file():
        # Tables had such ledgers once; what was measured there is not measured again.
        with LedgerReader(earlier) as reader:
            if reader.scenario.get("procedure") == SURVEY:
                return earlier
    return table.with_suffix(".measured.ledger")


def _drawn(proposer: Proposer | None, count: int, scenario: Path) -> tuple[Configuration, ...]:
    """The default and random draws, named by their settings, so that a table of them can be simulated on as a space."""
    if proposer is None:
        raise ScenarioError(f"--draws asks for random configurations, but {scenario.name} has no [space]; leave it out")
    space = proposer.space
    drawn = [space.default, *(space.draw(proposer.seed, number) for number in range(count))]
    return tuple(
        Configuration(name, dict(each), origin="random" if place else "default")
        for place, (name, each) in enumerate({json.dumps(each, sort_keys=True): each for each in drawn}.items())
    )


def _next(asked_for: Scenario, scenario: Path, out: Path, *, drawn: bool) -> str:
    """The command that asks the table what the scenario asks the program."""
    wishes = asked_for.wishes
    # Rows that were drawn are named by their settings: they are a space, not a list.
    space = ["--space", str(scenario)] if drawn else []
    gamma = [] if wishes.stop.gamma is None or not drawn else ["--option", f"gamma={wishes.stop.gamma:g}"]
    goal = ["--utility", wishes.utility, "--epsilon", f"{wishes.stop.epsilon:g}"]
    words = ["captime", "simulate", str(out), *space, *goal, *gamma]
    return printable(" ".join(map(quote, words)))


def _show(result: CampaignResult, out: Path, ledger: Path, table: RuntimeTable, *, as_json_object: bool) -> None:
    (n_configs, n_instances), notes = table.seconds.shape, table.notes
    if as_json_object:
        said = {
            "table": str(out),
            "ledger": str(ledger),
            "n_configs": n_configs,
            "n_instances": n_instances,
            "cpu_seconds": result.cpu_seconds,
            "stopped": result.outcome.stopped,
            "notes": list(notes),
        }
        typer.echo(json.dumps(said, indent=2))
        return
    spent = cpu_time(result.cpu_seconds, result.question.clock)
    typer.echo(f"{printable(str(out))}: {n_configs} configurations on {n_instances:,} instances, {spent}.")
    for note in notes:
        typer.echo(f"  {message(note)}")
