"""`captime demo`: a real solver, configured in about a minute on instances made on the fly."""

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from captime.campaign import CampaignResult
from captime.campaign.assembly import Assembly
from captime.cli.shared import asking_to_stop, print_certificate
from captime.errors import MissingExtra, ScenarioError
from captime.instances import script
from captime.report.campaign_view import shown_progress
from captime.report.campaigned import summary_and_table
from captime.report.charts.mpl import check_picture_path, draw_epsilon
from captime.report.ledger_data import read_story
from captime.report.page import report_page, write_report
from captime.report.views import figures_of
from captime.report.words import message
from captime.scenario import load_scenario
from captime.scenario.spec import allowed_cores
from captime.skeptic import audit
from captime.utilities.formula import parse_duration

_SCENARIO = """\
# Made by `captime demo`: kissat on planted 3-colouring formulas. Resume it: captime run {name} --epsilon 0.05
utility = "log-laplace(10ms, 1)"   # worth half as much after 10 ms, a tenth after 50 ms
delta = 0.1                        # the certificate may be wrong with this probability
seed = {seed}
jobs = {jobs}                           # one core is left to others: runs of milliseconds are easily disturbed

[target]
command = [{kissat!r}, "-q", "-n", "--seed={{seed}}", "{{options}}", "{{instance}}"]
answer = "^s (SATISFIABLE|UNSATISFIABLE)"
exit_codes = [10, 20]

[configurations]
default      = {{ options = [] }}
sat          = {{ options = ["--sat"] }}
unsat        = {{ options = ["--unsat"] }}
plain        = {{ options = ["--plain"] }}
basic        = {{ options = ["--basic"] }}
no-probing   = {{ options = ["--probe=false"] }}
no-stable    = {{ options = ["--stable=0"] }}
only-stable  = {{ options = ["--stable=2"] }}
no-eliminate = {{ options = ["--eliminate=false"] }}
no-simplify  = {{ options = ["--simplify=false"] }}

[instances]                        # an endless stream, made by seed when it is needed
generator = [{python!r}, "-I", {colouring!r}, "--seed", "{{k}}"]
suffix = ".cnf"

[stop]
epsilon = {epsilon}
wall = "{wall}"
"""


def demo_command(
    out: Annotated[Path, typer.Option(help="Folder for scenario, ledger and pictures.")] = Path("demo-out"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything drawn at random.")] = 1,
    epsilon: Annotated[float, typer.Option(help="Target epsilon: stop once it is certified.")] = 0.1,
    wall: Annotated[str, typer.Option(metavar="TIME", help="Stop after this time on the clock.")] = "60s",
) -> None:
    """Configure a real SAT solver on generated instances, and show what a certificate looks like.

    Everything it makes is in one folder: the scenario it wrote, the ledger with every run, and the pictures.
    """
    kissat = _kissat()
    picture = out / "epsilon.png"
    check_picture_path(picture)
    parse_duration(wall, "--wall")
    if not 0.0 <= epsilon < 1.0:
        raise ScenarioError(f"--epsilon is {epsilon:g}; expected a number from 0 to less than 1, such as 0.1")
    console = Console(highlight=False, soft_wrap=True)
    # Not before the call is known to be right: one that is refused leaves nothing behind, and takes nothing away.
    out.mkdir(parents=True, exist_ok=True)
    path = out / "scenario.toml"
    text = _SCENARIO.format(
        name=path,
        seed=seed,
        jobs=max(1, allowed_cores() - 1),
        kissat=kissat,
        python=sys.executable,
        colouring=str(script("colouring")),
        epsilon=epsilon,
        wall=wall,
    )
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        # Another demo: its runs answer another question.
        for old in (path.with_suffix(".ledger"), path.with_suffix(".ledger-wal"), path.with_suffix(".ledger-shm")):
            old.unlink(missing_ok=True)
    path.write_text(text, encoding="utf-8")
    console.print("kissat with ten configurations, on formulas for 3-colouring graphs of 80 to 200 nodes.")
    goal = f"Goal: within {epsilon:g} of the best, or {wall} on the clock."
    console.print(f"An answer is worth half as much after 10 ms. {goal}\n")
    result = _run(path)
    summary, table = summary_and_table(result)
    print_certificate(summary, table=table)
    if result.trouble is not None:
        raise result.trouble
    console.print()
    found = audit(result.ledger)
    console.print(
        f"captime verify: {found.verdict}. {found.rows:,} rows checked, the certificate derived from them again."
    )
    note = f"kissat, {result.question.utility}, delta = {result.question.delta:g}"
    draw_epsilon({"race": result.outcome.trace}, picture, note, epsilon)
    page = out / "report.html"
    story = read_story(result.ledger)
    write_report(report_page(story, figures_of(story)), page)
    console.print(message(f"\nScenario: {path}   every run: {result.ledger}"))
    console.print(message(f"To look at: {page}   {picture}"))
    console.print(
        message(f"Next: captime run {path} --epsilon 0.05   captime dashboard {result.ledger}   captime init")
    )


def _run(path: Path) -> CampaignResult:
    spec = load_scenario(path).build()
    campaign = Assembly.of(spec, spec.ledger)
    with (
        asking_to_stop() as asked,
        campaign.slots(asked) as at_work,
        shown_progress(campaign, "captime demo") as view,
    ):
        return at_work.run(view)


def _kissat() -> str:
    """The solver: on the path, or in the package that brings it."""
    found = shutil.which("kissat")
    if found is not None:
        return found
    spec = find_spec("sage_wheels")
    for folder in [] if spec is None else spec.submodule_search_locations or []:
        binary = Path(folder) / "bin" / "kissat"
        if binary.is_file():
            return str(binary)
    raise MissingExtra("the demo's solver, kissat,", "demo")
