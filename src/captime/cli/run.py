"""`captime run`: begin a campaign on real programs, or resume it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from captime.campaign import CampaignResult
from captime.campaign.assembly import Assembly
from captime.campaign.identity import as_begun
from captime.campaign.transfer import learn_from
from captime.cli import AsJson, Jobs, Oversubscribe, Quiet
from captime.cli.shared import asking_to_stop, print_certificate, progress_of
from captime.executors.retry import PATIENCE
from captime.procedures.pool_terms import Effort
from captime.report.campaigned import campaign_json, summary_and_table
from captime.scenario import load_scenario
from captime.utilities.formula import parse_duration

GOAL_REACHED = ("epsilon", "single")


def run_command(
    scenario: Annotated[Path, typer.Argument(help="The scenario, a TOML file; `captime init` writes one.")],
    *,
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where every run is recorded; beside the scenario by default.")
    ] = None,
    jobs: Jobs = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Target epsilon; 0 runs until another limit is reached.")
    ] = None,
    gamma: Annotated[
        float | None,
        typer.Option(help="On a space, the best fraction of it that may be missed; 0 for no such goal."),
    ] = None,
    effort: Annotated[
        Effort | None,
        typer.Option(
            help="On a space, what CPU time is mainly spent on: better configurations, the certificate, or both "
            "(balanced). An existing ledger keeps its own."
        ),
    ] = None,
    learn: Annotated[
        list[Path] | None,
        typer.Option(
            "--learn-from",
            metavar="LEDGER",
            help="An earlier ledger of the same target, for the model that proposes configurations and nothing else.",
        ),
    ] = None,
    oversubscribe: Oversubscribe = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Resume a ledger that another machine has not closed.")
    ] = False,
    patience: Annotated[
        str, typer.Option(metavar="TIME", help="How long to wait for a machine that is out of disk or memory.")
    ] = f"{PATIENCE / 60:g}min",
    quiet: Quiet = False,
    as_json_object: AsJson = False,
) -> None:
    """Find the best configuration of a program, with a certificate. Run the same command again to resume.

    Exit code 0: the goal was reached. 3: stopped early, the certificate printed is valid; or the scenario is not the
    one the ledger was begun with. 2: something in the command or the scenario is wrong. 4: the ledger is in use. 5: it
    is damaged. 6: the machine stays out of disk, memory, processes or descriptors, or the disk is read-only. 7: the
    program cannot be used as it is. 130, 143: ended by Ctrl-C or by a signal, with the certificate printed.
    """
    asked_for = load_scenario(scenario).with_effort(effort)
    path = ledger or asked_for.ledger
    spec = as_begun(asked_for, path).build()
    question = replace(spec.question, source=str(scenario.absolute())).with_goal(epsilon, gamma)
    earlier = learn_from(learn, question) if learn else None
    campaign = Assembly.of(spec, path, question, jobs=jobs, oversubscribe=oversubscribe)
    settings = replace(campaign.settings, patience=parse_duration(patience, "--patience"), take_over=take_over)
    campaign = replace(campaign, settings=settings)
    with asking_to_stop() as asked, campaign.slots(asked) as at_work:
        with progress_of(campaign, f"captime run {scenario.name}", quiet=quiet or as_json_object) as view:
            result = at_work.run(view, earlier)
        # Before the cluster is closed, which may take a while.
        show_result(result, as_json_object=as_json_object)
    if result.trouble is not None:
        raise result.trouble
    if asked.signal is not None:
        raise typer.Exit(128 + asked.signal)
    raise typer.Exit(0 if result.outcome.stopped in GOAL_REACHED else 3)


def show_result(result: CampaignResult, *, as_json_object: bool) -> None:
    """What came out, for people or for programs."""
    summary, table = summary_and_table(result)
    if as_json_object:
        typer.echo(json.dumps(campaign_json(result, summary, table), indent=2))
    else:
        print_certificate(summary, table=table)
