"""`captime validate`: what the chosen configurations are worth on instances that chose nobody."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from captime.campaign import Question, measure, table_of
from captime.campaign.from_parts import manner_of, question_of, with_jobs
from captime.campaign.roster import configuration_of
from captime.campaign.validating import Validation, Worth, validate
from captime.certificate import Certificate
from captime.cli.interrupts import asking_to_stop
from captime.cli.recorded import scenario_of
from captime.errors import ScenarioError
from captime.ledger import ConfigRow, LedgerReader
from captime.report.campaign_view import campaign_view
from captime.report.words import printable, rounded_down, rounded_up
from captime.scenario import Scenario, load_scenario
from captime.scenario.models import Instances
from captime.utilities.durations import parse_duration

# Where an answer is worth so little, a longer captime tells next to nothing about a mean.
_WORTH_LITTLE = 0.01


def validate_command(
    ledger: Annotated[Path, typer.Argument(help="The ledger of a campaign.")],
    *,
    instances: Annotated[str, typer.Option(help="A pattern of file names: instances that chose nobody.")],
    configs: Annotated[
        str, typer.Option(metavar="NAME,NAME,…", help="Whom to run; leader is the recommended one.")
    ] = "leader,default",
    scenario: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The scenario; the one that the ledger names by default.")
    ] = None,
    captime: Annotated[
        str | None, typer.Option(metavar="TIME", help="For every run; where u is 0.01 by default.")
    ] = None,
    delta: Annotated[float, typer.Option(help="Allowed probability that any interval is wrong.")] = 0.1,
    jobs: Annotated[int | None, typer.Option(min=1, help="How many runs go on at once.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json_object: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run chosen configurations on held-out instances: utilities, improvement, and what was only luck.

    Exit code 0: all runs are made. 3: stopped early; what is printed is about instances on which nothing is missing.
    """
    with LedgerReader(ledger) as reader:
        certified = reader.last_certificate()
        if certified is None:
            raise ScenarioError(f"{ledger} has no certificate yet, so there is nobody to validate; go on with it first")
        rows = [_row_of(name, reader.configs, certified.certificate.config) for name in _names(configs)]
        held, path = certified.certificate, scenario or scenario_of(reader, needed=True)
    tested = _on_others(load_scenario(path), rows, instances)
    parts = tested.build()
    question = replace(question_of(parts), proposer=None)
    seconds = _captime(question, captime)
    out = ledger.with_suffix(".validation.ledger")
    with (
        asking_to_stop() as asked,
        campaign_view(
            question.names, 0.0, f"captime validate {ledger.name}", quiet=quiet or as_json_object, ledger=out
        ) as view,
    ):
        result = measure(
            question,
            out,
            captime=seconds,
            manner=with_jobs(manner_of(parts), jobs, oversubscribe=parts.oversubscribe),
            observer=view,
            interrupted=asked,
        )
    found = validate(table_of(out, "held-out", seconds), question.utility, delta)
    if as_json_object:
        typer.echo(json.dumps(_as_json(found, rows, held, out), indent=2))
    else:
        _print(found, rows, held)
    if asked.signal is not None:
        raise typer.Exit(128 + asked.signal)
    raise typer.Exit(0 if result.outcome.stopped == "instances" else 3)


def _names(text: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise ScenarioError(f"--configs is {text!r}; name at least one configuration, such as leader,default")
    return names


def _row_of(name: str, configs: list[ConfigRow], leader: int) -> ConfigRow:
    if name == "leader":
        return configs[leader]
    for row in configs:
        if row.name == name:
            return row
    known = ", ".join(printable(row.name) for row in configs[:8])
    raise ScenarioError(f"--configs names {name!r}, but the ledger has none of that name; there are leader, {known}")


def _on_others(scenario: Scenario, rows: list[ConfigRow], instances: str) -> Scenario:
    """The same program with these configurations only, on other instances, each once."""
    distinct = {row.index: row for row in rows}.values()
    pattern = str(Path(instances) / "*") if Path(instances).is_dir() else instances
    where = Instances(files=str(Path.cwd() / pattern), sampling="given")
    return replace(
        scenario,
        wishes=scenario.wishes.model_copy(update={"instances": where}),
        candidates=tuple(configuration_of(row) for row in distinct),
    )


def _captime(question: Question, text: str | None) -> float:
    if text is not None:
        return parse_duration(text, "--captime")
    return min(question.ceiling, float(question.utility.inverse(np.array(_WORTH_LITTLE))))


def _as_json(found: Validation, rows: list[ConfigRow], held: Certificate, out: Path) -> dict[str, object]:
    return {
        "n_instances": found.n_instances,
        "delta": found.delta,
        "leader": rows[0].name,
        "worth": {name: asdict(worth) for name, worth in found.worth.items()},
        "improvement_over": {name: asdict(worth) for name, worth in found.better.items()},
        "certified": {"utility_low": held.utility_low, "utility_high": held.utility_high},
        "gap": _gap(found, rows, held),
        "ledger": str(out),
    }


def _gap(found: Validation, rows: list[ConfigRow], held: Certificate) -> list[float] | None:
    """Between what and what the leader may be worth less here than where it was chosen; None if it was not run."""
    leader = next((row.name for row in rows if row.index == held.config), None)
    if leader is None:
        return None
    worth = found.worth[leader]
    return [held.utility_low - worth.high, held.utility_high - worth.low]


def _print(found: Validation, rows: list[ConfigRow], held: Certificate) -> None:
    console = Console(highlight=False, markup=False)
    sure = f"{100 * (1 - found.delta):g} %"
    console.print(f"On {found.n_instances:,} held-out instances; all intervals together hold with probability {sure}.")
    shown = Table()
    for heading in ("configuration", "mean utility", "expected utility"):
        shown.add_column(heading, justify="left" if heading == "configuration" else "right")
    for name, worth in found.worth.items():
        shown.add_row(printable(name), _seen(worth), f"{rounded_down(worth.low)} to {rounded_up(worth.high)}")
    console.print(shown)
    for name, worth in found.better.items():
        console.print(
            f"{printable(rows[0].name)} beats {printable(name)} by {_seen(worth)}; expected: "
            f"{rounded_down(worth.low)} to {rounded_up(worth.high)}",
            soft_wrap=True,
        )
    gap = _gap(found, rows, held)
    if gap is not None:
        console.print(
            f"Where it was chosen it was certified to be worth {rounded_down(held.utility_low)} to "
            f"{rounded_up(held.utility_high)}; here it is worth {rounded_down(gap[0])} to {rounded_up(gap[1])} less.",
            soft_wrap=True,
        )


def _seen(worth: Worth) -> str:
    """What was measured: a number, or two if some runs were cut."""
    low, high = f"{worth.seen_low:.4f}", f"{worth.seen_high:.4f}"
    return low if low == high else f"{low} to {high}"
