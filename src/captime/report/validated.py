"""What a validation came to: as sentences and a table, and as one JSON object."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from captime.campaign.measurement import runs_of_survey
from captime.campaign.validation import Validation, Worth, validation_of
from captime.certificate import Certificate
from captime.errors import CaptimeError, ScenarioError
from captime.ledger import LedgerReader
from captime.ledger.rows import SampleRow
from captime.procedures.survey import SURVEY
from captime.report.charts.chart import Node, element
from captime.report.ledger_data import LedgerData
from captime.report.words import printable, rounded_down, rounded_up


@dataclass(frozen=True, slots=True)
class Validated:
    """A validation with what there is to tell about it.

    Attributes:
        found: The numbers.
        asked: The configurations it was about, each as asked for and by its own name: `leader` has another one.
        recommended: Name of the configuration that the campaign recommends.
        held: What was certified about it.
        n_met: How many of the instances the campaign had met.
        captime: Of every run, in seconds.
        ledger: Where the runs are.
        stopped: Why it ended, by the word that ledgers have for it.
    """

    found: Validation
    asked: tuple[tuple[str, str], ...]
    recommended: str
    held: Certificate
    n_met: int
    captime: float
    ledger: Path
    stopped: str

    @property
    def first(self) -> str:
        """The configuration that all others are compared with."""
        return self.asked[0][1]

    @property
    def leader(self) -> str | None:
        """The recommended configuration, if it was run."""
        return self.recommended if self.recommended in self.found.worth else None

    @property
    def gap(self) -> tuple[float, float] | None:
        """Between what and what the leader may be worth less here than where it was chosen; None if it was not run."""
        if self.leader is None:
            return None
        worth = self.found.worth[self.leader]
        return self.held.utility_low - worth.high, self.held.utility_high - worth.low


def validated_json(told: Validated) -> dict[str, object]:
    """Everything, in words that JSON knows."""
    found, held = told.found, told.held
    return {
        "n_instances": found.n_instances,
        "n_met": told.n_met,
        "captime": told.captime,
        "delta": found.delta,
        "first": told.first,
        "leader": told.leader,
        "worth": {name: asdict(worth) for name, worth in found.worth.items()},
        "improvement_over": {name: asdict(worth) for name, worth in found.better.items()},
        "certified": {
            "name": told.recommended,
            "utility_low": held.utility_low,
            "utility_high": held.utility_high,
        },
        "gap": None if told.gap is None else list(told.gap),
        "stopped": told.stopped,
        "ledger": str(told.ledger),
    }


def print_validated(told: Validated) -> None:
    """For people."""
    console = Console(highlight=False, markup=False)
    console.print(where(told), soft_wrap=True)
    shown = Table()
    for heading in ("configuration", "mean utility", "expected utility"):
        shown.add_column(heading, justify="left" if heading == "configuration" else "right")
    for name, worth in told.found.worth.items():
        shown.add_row(printable(name), *worth_cells(worth))
    console.print(shown)
    for sentence in sentences(told):
        console.print(sentence, soft_wrap=True)
    console.print(f"The runs are in {printable(str(told.ledger))}; the same command finds them there.", soft_wrap=True)


def sentences(told: Validated) -> list[str]:
    """Return what follows from the numbers: how the first compares with the others, and what was only luck."""
    return [*_stand_in(told), *_same(told), *_comparisons(told), *_gap(told)]


def where(told: Validated) -> str:
    """Return on which instances it was, and how sure the intervals are."""
    n, sure = told.found.n_instances, f"{100 * (1 - told.found.delta):g} %"
    if told.n_met == 0:
        instances = "instance" if n == 1 else "instances"
        return f"On {n:,} held-out {instances}; all intervals together hold with probability {sure}."
    return (
        f"On {n:,} instances. The campaign had met {told.n_met:,} of those named: its choice may be due to them, "
        f"and the intervals, which would hold with probability {sure} on others, do not allow for it."
    )


def _stand_in(told: Validated) -> list[str]:
    """Return which configuration was taken for the default, if none has that name."""
    return [
        f"No configuration is called default; {printable(name)}, the first of the list, stands for it."
        for wanted, name in told.asked
        if wanted == "default" != name
    ]


def _same(told: Validated) -> list[str]:
    """Two names for one configuration leave nothing to compare; that is an answer too."""
    by_name: dict[str, list[str]] = {}
    for wanted, name in told.asked:
        by_name.setdefault(name, []).append(wanted)
    return [
        f"{' and '.join(map(printable, wanted))} are one configuration: the campaign recommends {printable(name)}, so "
        "between them there is no improvement to show."
        for name, wanted in by_name.items()
        if len(wanted) > 1
    ]


def _comparisons(told: Validated) -> list[str]:
    first = printable(told.first)
    return [
        f"{first} {_against(printable(name), worth)} here; the difference of the expected utilities is between "
        f"{rounded_down(worth.low)} and {rounded_up(worth.high)}."
        for name, worth in told.found.better.items()
    ]


def _against(other: str, worth: Worth) -> str:
    """Phrase a difference of means."""
    if worth.seen_low == worth.seen_high == 0.0:
        return f"is worth as much as {other}"
    if worth.seen_low >= 0.0:
        return f"beats {other} by {_seen(worth)}"
    if worth.seen_high <= 0.0:
        return f"is behind {other} by {_seen(Worth(-worth.seen_high, -worth.seen_low, -worth.high, -worth.low))}"
    return f"is worth between {-worth.seen_low:.4f} less and {worth.seen_high:.4f} more than {other}"


def _gap(told: Validated) -> list[str]:
    """What was luck: the leader here, and where it was chosen."""
    if told.gap is None or told.leader is None:
        return []
    low, high = told.gap
    if low >= 0.0:
        less = f"{rounded_down(low)} to {rounded_up(high)} less"
    elif high <= 0.0:
        less = f"{rounded_down(-high)} to {rounded_up(-low)} more"
    else:
        less = f"between {rounded_up(-low)} more and {rounded_up(high)} less"
    certified = f"{rounded_down(told.held.utility_low)} to {rounded_up(told.held.utility_high)}"
    name = printable(told.leader)
    return [f"The leader, {name}, was certified to be worth {certified} where it was chosen; here it is worth {less}."]


def worth_cells(worth: Worth) -> tuple[str, str]:
    """Return what was measured of a mean, and its interval."""
    return _seen(worth), f"{rounded_down(worth.low)} to {rounded_up(worth.high)}"


def _seen(worth: Worth) -> str:
    """What was measured: a number, or two if some runs were cut."""
    low, high = f"{worth.seen_low:.4f}", f"{worth.seen_high:.4f}"
    return low if low == high else f"{low} to {high}"


DELTA = 0.1
"""Allowed probability that any interval of one validation is wrong, where a ledger is all there is."""


def validations_of(story: LedgerData, named: Sequence[Path] | None) -> list[Validated]:
    """Read the validations of a campaign.

    Args:
        story: The campaign.
        named: Their ledgers; None for those that stand beside the campaign's under the names that `captime validate`
            gives them. Of these, one that is unfinished or of another campaign is left out.
    """
    if named is not None:
        return [_read(story, path) for path in named]
    found = []
    for path in sorted(story.path.parent.glob(f"{_literal(story.path.stem)}.validation*.ledger")):
        try:
            found.append(_read(story, path))
        except CaptimeError:
            continue
    return found


def _literal(stem: str) -> str:
    return "".join(f"[{each}]" if each in "*?[" else each for each in stem)


def _read(story: LedgerData, path: Path) -> Validated:
    if story.certificate is None or story.utility is None:
        raise ScenarioError(
            f"{path}: a validation is shown beside the certificate it belongs to, but {story.path} has no certificate "
            "yet, or a utility that only code can tell; leave --validation out"
        )
    with LedgerReader(path) as reader:
        names = [config.name for config in reader.configs]
        options = reader.scenario.get("options")
        captime = options.get("captime") if isinstance(options, dict) else None
        strangers = [name for name in names if name not in story.names]
        is_survey = reader.scenario.get("procedure") == SURVEY
        if not is_survey or not isinstance(captime, int | float) or strangers:
            why = f"it has runs of {strangers[0]!r}, which the campaign does not know" if strangers else "it is none"
            raise ScenarioError(
                f"{path}: expected a ledger of `captime validate {story.path}`, but {why}; name another, or leave "
                "--validation out"
            )
        samples = reader.sample_rows()
        stops = [str(event.facts.get("because", "")) for event in reader.events() if event.kind == "stopped"]
        table, unfinished = runs_of_survey(reader, "held-out", float(captime))
    return Validated(
        found=validation_of(table, story.utility, DELTA, unfinished),
        asked=tuple((name, name) for name in names),
        recommended=story.names[story.leader],
        held=story.certificate,
        n_met=_met(story.samples, samples),
        captime=float(captime),
        ledger=path,
        stopped=stops[-1] if stops else "",
    )


def _met(used: Sequence[SampleRow], held_out: Sequence[SampleRow]) -> int:
    """Count the instances that the campaign has used too: the same content, or the same name if no content is known."""
    contents = {sample.digest for sample in used if sample.digest}
    names = {sample.instance for sample in used if not sample.digest}
    return sum(sample.digest in contents or sample.instance in names for sample in held_out)


def validation_section(held_out: Sequence[Validated]) -> list[Node]:
    """Return the section of a report; nothing without validations."""
    if not held_out:
        return []
    section = element("section", element("h2", "On held-out instances"), id="validation")
    for told in held_out:
        head = element("tr", *(element("th", word) for word in ("configuration", "mean utility", "expected utility")))
        rows = [
            element("tr", element("td", name), *(element("td", cell, class_="number") for cell in worth_cells(worth)))
            for name, worth in told.found.worth.items()
        ]
        table = element("table", element("thead", head), element("tbody", *rows), class_="configurations")
        section.add(element("p", where(told)), element("div", table, class_="scroll"))
        section.add(*(element("p", sentence) for sentence in sentences(told)))
        section.add(element("p", f"The runs are in {told.ledger.name}.", class_="caption"))
    return [section]


def validations_json(held_out: Sequence[Validated]) -> list[dict[str, object]]:
    """Return every validation as `captime validate --json` prints it."""
    return [validated_json(told) for told in held_out]
