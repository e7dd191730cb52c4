"""`captime validate`: what chosen configurations are worth on held-out instances."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from glob import escape, glob
from pathlib import Path
from typing import Annotated, Any

import typer

from captime.campaign import CampaignQuestion
from captime.campaign.assembly import Assembly
from captime.campaign.identity import with_seed_on_record
from captime.campaign.measurement import measured_runs, survey_of
from captime.campaign.validation import (
    on_files,
    on_generated,
    on_values,
    only,
    refuse_if_silent,
    used_in_tuning,
    usual_captime,
    validation_of,
)
from captime.certificate import check_delta
from captime.cli import AsJson, Captime, Jobs, Quiet, ScenarioFile, Values
from captime.cli.shared import (
    COMPLETE,
    LedgerArgument,
    asking_to_stop,
    ledger_of,
    progress_of,
    say_missing,
    say_why,
    scenario_on_record,
)
from captime.errors import ScenarioError
from captime.files import read_limited
from captime.ledger import ConfigRow, LedgerReader
from captime.ledger.rows import SampleRow
from captime.programs.protocol import did_you_mean
from captime.report.validated import Validated, print_validated, validated_json
from captime.report.words import printable
from captime.scenario import Scenario, load_scenario
from captime.scenario.errors import shown
from captime.scenario.identity import plain, scenario_hash
from captime.streams import FiniteStream
from captime.utilities.formula import parse_duration

_NAMES_SHOWN = 8
_LONGEST_FOLDER = 40
_LARGEST_LIST = 32 << 20


def validate_command(
    ledger: LedgerArgument,
    *,
    instances: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Files that were not used during configuration.")
    ] = None,
    values: Values = None,
    generate: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="With a generator: number of further instances to make."),
    ] = None,
    configs: Annotated[
        str,
        typer.Option(
            metavar="NAME,NAME,…",
            help="Configurations to run: leader is the recommended one, default the one of that name or else the "
            "first of the list.",
        ),
    ] = "leader,default",
    scenario: ScenarioFile = None,
    captime: Captime = None,
    delta: Annotated[float, typer.Option(help="Allowed probability that any interval is wrong.")] = 0.1,
    own: Annotated[
        Path | None,
        typer.Option(
            "--ledger", metavar="FILE", help="Where these runs are recorded; beside the campaign's ledger by default."
        ),
    ] = None,
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json_object: AsJson = False,
) -> None:
    """Run chosen configurations on held-out instances: utilities and improvement with their bounds.

    Run the same command again to resume; no run is repeated. Exit code 0: all runs are made. 3: stopped early; what is
    printed is about the instances before the first one on which a run is missing. 7: no run has answered.
    """
    ledger = ledger_of(ledger)
    check_delta(delta)  # before hours are spent on runs
    with LedgerReader(ledger) as reader:
        say_missing(reader.missing)
        certified = reader.last_certificate()
        if certified is None:
            raise ScenarioError(
                f"{ledger} has no certificate yet, so there is no configuration to validate; resume the campaign first"
            )
        held, known, samples = certified.certificate, reader.configs, reader.sample_rows()
        path, seed = scenario or scenario_on_record(reader, needed=True), reader.scenario.get("seed")
    asked_for = [(name, row_named(name, known, held.config)) for name in _names(configs)]
    chosen_on = with_seed_on_record(load_scenario(path), seed)
    source = _source(chosen_on, samples, instances, values, generate)
    tested = only(source, (row for _, row in asked_for))
    others = tested.stream  # first of all, while complaints about it name nothing but the option
    spec = tested.build()
    question = replace(spec.question, proposer=None)
    seconds = usual_captime(question) if captime is None else parse_duration(captime, "--captime")
    met = used_in_tuning(samples, chosen_on, others) if isinstance(others, FiniteStream) else []
    n_instances = generate or others.length or 0
    _warn(met, n_instances)
    out = own or _own_ledger(ledger, survey_of(question, seconds, generate), instances)
    campaign = Assembly.of(spec, out, question, jobs=jobs)
    n_runs = len(question.configs) * n_instances
    with asking_to_stop() as asked, campaign.slots(asked) as at_work:
        title = f"captime validate {ledger.name}"
        with progress_of(campaign, title, quiet=quiet or as_json_object, n_runs=n_runs) as view:
            result = at_work.measure(view, captime=seconds, instances=generate)
        # Before the cluster is closed, which may take a while.
        if result.trouble is not None:
            raise result.trouble
        stopped = result.outcome.stopped
        say_why(stopped)
        table, unfinished = measured_runs(out, "held-out", seconds, unbroken=True)
        told = Validated(
            found=validation_of(table, question.utility, delta, unfinished),
            asked=tuple((name, row.name) for name, row in asked_for),
            recommended=known[held.config].name,
            held=held,
            n_met=len(met),
            captime=seconds,
            ledger=out,
            stopped=stopped,
        )
        if as_json_object:
            typer.echo(json.dumps(validated_json(told), indent=2))
        else:
            print_validated(told)
    if asked.signal is not None:
        raise typer.Exit(128 + asked.signal)
    refuse_if_silent(table, question)
    raise typer.Exit(0 if stopped == COMPLETE else 3)


def _names(text: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise ScenarioError(f"--configs is {text!r}; name at least one configuration, such as leader,default")
    return names


def row_named(name: str, configs: Sequence[ConfigRow], leader: int, option: str = "--configs") -> ConfigRow:
    """Find a configuration by its name, or as `leader` or `default`."""
    if name == "leader":
        return configs[leader]
    for row in configs:
        if row.name == name:
            return row
    if name == "default":
        return configs[0]
    near = did_you_mean(name, [row.name for row in configs])
    shown = ", ".join(printable(row.name) for row in configs[:_NAMES_SHOWN])
    more = f" and {len(configs) - _NAMES_SHOWN:,} more" if len(configs) > _NAMES_SHOWN else ""
    raise ScenarioError(
        f"{option} names {name!r}, but the ledger has none of that name{near or '; there are leader, ' + shown + more}"
    )


def _source(
    campaign: Scenario, samples: Sequence[SampleRow], instances: str | None, values: str | None, generate: int | None
) -> Scenario:
    """The scenario on the instances that were asked for, in one of the three ways."""
    given = {"--instances": instances, "--values": values, "--generate": generate}
    named = [option for option, value in given.items() if value is not None]
    if len(named) != 1:
        found = f"{' and '.join(named)} say" if named else "nothing says"
        raise ScenarioError(
            f"{found} which instances are held out; expected one of --instances 'test/*.cnf' (files), "
            "--values '[70, 71]' (values) and --generate 100 (further instances of the scenario's generator)"
        )
    if instances is not None:
        return on_files(campaign, pattern_typed(instances), "--instances")
    if values is not None:
        return on_values(campaign, values_typed(values), "--values")
    return on_generated(campaign, 1 + max((sample.position for sample in samples), default=-1), "--generate")


def values_typed(typed: str) -> list[Any]:
    """The values of a JSON list, or of a file that holds one."""
    try:
        # Unlike Path.is_file, this takes a list that is too long for a name of a file.
        text = read_limited(typed, _LARGEST_LIST).decode() if os.path.isfile(typed) else typed  # noqa: PTH113
        found = json.loads(text, parse_constant=_refuse_constant)
    except OSError as error:
        raise ScenarioError(f"--values is {shown(typed)}, which cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ScenarioError(
            f"--values is {shown(typed)}, which is neither a file nor JSON ({error}); expected a list such as "
            "'[70, 71]' or '[\"a\", \"b\"]', in quotes"
        ) from None
    if not isinstance(found, list) or not found:
        raise ScenarioError(f"--values is {shown(found)}; expected a list with at least one value, such as '[70, 71]'")
    return found


def _refuse_constant(name: str) -> None:
    """Refuse what Python's reader of JSON takes for a number and JSON does not know."""
    raise ValueError(f"{name} is no value of JSON")


def pattern_typed(typed: str, option: str = "--instances") -> str:
    """A file, all files of a folder, or a pattern; seen from the current folder, as a shell does."""
    here = Path.cwd()
    pattern = escape(typed) if Path(typed).exists() else typed
    full = str(Path(escape(str(here))) / pattern / ("*" if Path(typed).is_dir() else ""))
    if typed and any(Path(name).is_file() for name in glob(full, recursive=True)):  # noqa: PTH207 (a pattern is no path)
        return full
    found = "a pattern that matches no file"
    if Path(typed).is_dir():
        found = "a folder without files" if typed else "an empty text"
    raise ScenarioError(
        f"{option} is {typed!r}, {found} as seen from the current folder, {str(here)!r}; name a file, a folder or a "
        "pattern such as 'test/*.cnf', in quotes"
    )


def _warn(met: Sequence[str], n_instances: int) -> None:
    if met:
        typer.echo(
            f"captime: the campaign has used {len(met):,} of these {n_instances:,} instances, such as "
            f"{printable(met[0])!r}; they are not held out, and what is said about them may be luck. Name instances "
            "that it has not run on.",
            err=True,
        )


def _own_ledger(ledger: Path, asked: CampaignQuestion, instances: str | None) -> Path:
    """Beside the campaign's: named after the folder of the instances, and by all that makes it the same question."""
    typed = Path(instances or "")
    folder = (typed if typed.is_dir() else typed.parent).resolve().name if instances is not None else ""
    word = re.sub(r"[^A-Za-z0-9_]+", "-", folder).strip("-")[:_LONGEST_FOLDER]
    number = scenario_hash(plain(asked.identity))[:8]
    return ledger.with_suffix("." + "-".join(part for part in ("validation", word, number) if part) + ".ledger")
