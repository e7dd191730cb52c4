"""Validations of a campaign, found in their ledgers: the held-out instances that `captime validate` has run."""

from collections.abc import Sequence
from pathlib import Path

from captime.campaign.measurement import SURVEY, measured_runs
from captime.campaign.validation import validate
from captime.errors import CaptimeError, ScenarioError
from captime.ledger import LedgerReader
from captime.ledger.rows import SampleRow
from captime.report.charts.nodes import Node, element
from captime.report.story import Story
from captime.report.validated import Validated, sentences, validated_json, where, worth_cells

DELTA = 0.1
"""Allowed probability that any interval of one validation is wrong, where a ledger is all there is."""


def validations_of(story: Story, named: Sequence[Path] | None) -> list[Validated]:
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


def _read(story: Story, path: Path) -> Validated:
    if story.certificate is None or story.utility is None:
        raise ScenarioError(
            f"{path}: a validation is shown beside the certificate it belongs to, but {story.path} has no certificate "
            "yet, or a utility that only code can tell; leave --validation out"
        )
    with LedgerReader(path) as reader:
        names = [config.name for config in reader.configs]
        options, samples = reader.scenario.get("options"), reader.sample_rows()
        is_survey = reader.scenario.get("procedure") == SURVEY
        stops = [str(event.facts.get("because", "")) for event in reader.events() if event.kind == "stopped"]
    captime = options.get("captime") if isinstance(options, dict) else None
    strangers = [name for name in names if name not in story.names]
    if not is_survey or not isinstance(captime, int | float) or strangers:
        why = f"it has runs of {strangers[0]!r}, which the campaign does not know" if strangers else "it is none"
        raise ScenarioError(
            f"{path}: expected a ledger of `captime validate {story.path}`, but {why}; name another, or leave "
            "--validation out"
        )
    table, unfinished = measured_runs(path, "held-out", float(captime))
    return Validated(
        found=validate(table, story.utility, DELTA, unfinished),
        asked=tuple((name, name) for name in names),
        recommended=story.names[story.leader],
        held=story.certificate,
        n_met=_met(story.path, samples),
        captime=float(captime),
        ledger=path,
        stopped=stops[-1] if stops else "",
    )


def _met(campaign: Path, held_out: Sequence[SampleRow]) -> int:
    """Count the instances that the campaign has used too: the same content, or the same name if no content is known."""
    with LedgerReader(campaign) as reader:
        used = reader.sample_rows()
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
