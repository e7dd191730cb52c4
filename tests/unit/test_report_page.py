"""The report: one file that needs nothing else, in which names stay names."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from captime import simulate
from captime.cli import app
from captime.report.charts.chart import Node, element
from captime.report.ledger_data import read_story
from captime.report.ledger_words import assumptions_on_record, quality, summary_of_story
from captime.report.page import report_page
from captime.report.simulated import write_trace
from captime.report.views import FIGURES, figures_of
from captime.sources.synthetic import synthetic_table
from report_ledgers import PAYLOADS, hand_written, hostile, raced_ledger, shared_memory

# Importance needs a space of parameters; these campaigns have a list of configurations.
LISTED = [name for name in FIGURES if name != "importance"]

WORDS_FOR_NUMBERS = json.dumps(
    {
        "kind": "decision",
        "round": 1,
        "seconds": "x",
        "config": 0,
        "epsilon": 1,
        "candidates": 1,
        "runs": 1,
        "captime": None,
        "config_name": "a",
    }
)


class Reader(HTMLParser):
    """Every element, attribute and text of a page, as a browser would see them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.raw: dict[str, str] = {}
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take it down."""
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        """Outside again."""
        self._inside = ""

    def handle_data(self, data: str) -> None:
        """Take it down."""
        if self._inside in {"script", "style"}:
            self.raw[self._inside] = self.raw.get(self._inside, "") + data
        self.texts.append(data)


def typed(*words: str) -> Result:
    """A command."""
    return CliRunner().invoke(app, list(words))


@pytest.fixture(scope="module")
def page() -> str:
    """The report of a race."""
    story = read_story(raced_ledger())
    return report_page(story, figures_of(story))


def test_the_page_needs_nothing_from_anywhere(page: str) -> None:
    """No address but its own anchors, one script, one style sheet, no style attributes, no handlers."""
    read = Reader(page)
    addresses = [value for _, name, value in read.attributes if name in {"href", "src", "action", "data", "poster"}]
    assert all(value.startswith("#") for value in addresses)
    assert read.tags.count("script") == 1
    assert not {"link", "img", "iframe", "object", "form", "base"} & set(read.tags)
    assert not [name for _, name, _ in read.attributes if name.startswith("on") or name == "style"]
    assert "@import" not in read.raw["style"]
    assert "url(" not in read.raw["style"]


def test_the_policy_allows_exactly_our_script_and_style(page: str) -> None:
    """The hashes in the policy are those of what is on the page; everything else is forbidden."""
    read = Reader(page)
    policy = next(value for tag, name, value in read.attributes if tag == "meta" and "default-src" in value)
    for kind in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(read.raw[kind].encode("utf-8")).digest()).decode("ascii")
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_every_figure_of_a_campaign_is_there_with_caption_and_numbers(page: str) -> None:
    """Eleven questions, each with a chart, a caption and a table to copy."""
    read = Reader(page)
    sections = [value for tag, name, value in read.attributes if tag == "section" and name == "id"]
    assert sections == ["certificate", "configurations", *LISTED]
    assert read.tags.count("svg") >= len(LISTED)
    captions = [text for text in read.texts if text.startswith("Figure ")]
    assert len(captions) == len(LISTED)
    assert "With probability at least 90 %" in page


def test_payloads_in_every_field_stay_text() -> None:
    """Sixty of them, as names, settings, instances, answers, hosts, last words and notes: no element is born."""
    path = shared_memory() / "hostile.ledger"
    hostile(path)
    story = read_story(path)
    views = figures_of(story)
    found = Reader(report_page(story, views))
    clean = Reader(report_page(read_story(raced_ledger()), figures_of(read_story(raced_ledger()))))
    assert set(found.tags) <= set(clean.tags) | {"option"}
    assert found.tags.count("script") == 1
    assert found.raw["script"] == clean.raw["script"]
    assert not [name for _, name, _ in found.attributes if name.startswith("on") or name in {"style", "srcdoc"}]
    text = "".join(found.texts) + "".join(value for _, _, value in found.attributes)
    # They are all there, as words.
    assert all(payload.strip("\u2028\u2029")[:20] in text for payload in PAYLOADS)


def test_text_is_escaped_where_the_tree_is_written() -> None:
    """Markup, quotes, control characters and lone surrogates."""
    node = element("p", "<b>&\x1b\x00\ud800", title="\"'<>&\x07", class_="a")
    assert node.text() == '<p title="&quot;&#x27;&lt;&gt;&amp;\\x07" class="a">&lt;b&gt;&amp;\\x1b\\x00\\ud800</p>'
    assert Node("g", {"x": 1.0, "y": None, "hidden": True}, ["t"]).json() == ["g", {"x": "1", "hidden": "True"}, "t"]


def test_the_command_writes_the_page_and_says_where(tmp_path: Path) -> None:
    """Beside the ledger, or where -o says; the campaign may still be running."""
    with hand_written(tmp_path / "hand.ledger"):
        made = typed("report", str(tmp_path / "hand.ledger"))
        assert made.exit_code == 0, made.output
        assert (tmp_path / "hand.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
        named = typed(
            "report", str(tmp_path / "hand.ledger"), "-o", str(tmp_path / "other.html"), "--pair", "slow,fast"
        )
        assert named.exit_code == 0
        page = Reader((tmp_path / "other.html").read_text(encoding="utf-8"))
        assert "time of slow" in page.texts
        assert "time of fast" in page.texts


def test_the_numbers_are_one_json_object(tmp_path: Path) -> None:
    """Certificate, names and everything behind the figures; the tables have what the ledger has."""
    with hand_written(tmp_path / "hand.ledger"):
        told = json.loads(typed("report", str(tmp_path / "hand.ledger"), "--json").stdout)
    assert told["certificate"]["config_name"] == "fast"
    assert told["configurations"] == ["fast", "slow", "crashing"]
    table = told["figures"]["intervals"]["table"]
    first = dict(zip(table["columns"], table["rows"][0], strict=True))
    assert (first["configuration"], first["runs"], first["cpu_seconds"]) == ("fast", 4, 10.0)
    assert first["utility"] == pytest.approx((59 + 58 + 57 + 56) / 240)
    steps = told["figures"]["epsilon"]["campaigns"][0]
    assert steps["epsilon"] == [0.9, 0.5, 0.25]
    assert told["figures"]["heat"]["table"]["rows"][0][2] in {"crash", "memout"}


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_a_trace_has_a_report_too(tmp_path: Path, suffix: str) -> None:
    """Decisions, eliminations and captimes; and it says that runs are missing."""
    table = synthetic_table(1, 4, 400, limit=900.0)
    result = simulate(table, utility="uniform(60)", procedure="up", epsilon=0.5)
    path = tmp_path / f"story{suffix}"
    write_trace(result.outcome.trace, table.configs, path)
    told = json.loads(typed("report", str(path), "--json").stdout)
    made = result.outcome.trace.decisions()
    assert told["figures"]["epsilon"]["campaigns"][0]["epsilon"][-1] == pytest.approx(made.epsilon[-1])
    rises = [incident for incident in result.outcome.trace.incidents() if incident.kind == "captime"]
    assert len(told["figures"]["captimes"]["table"]["rows"]) == len(rises)
    assert typed("report", str(path)).exit_code == 0
    assert "no runs" in path.with_suffix(".html").read_text(encoding="utf-8")


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_a_trace_says_for_which_purposes_cpu_time_was_spent(tmp_path: Path, suffix: str) -> None:
    """The book of the race stands behind its last decision, adds up, and is a figure of the report."""
    table = synthetic_table(1, 4, 400, limit=900.0)
    result = simulate(table, utility="uniform(60)", epsilon=0.3, sampling="replace")
    path = tmp_path / f"story{suffix}"
    write_trace(result.outcome.trace, table.configs, path)
    told = json.loads(typed("report", str(path), "--json").stdout)
    book = told["figures"]["spending"]["by_purpose"]
    assert set(book) == set(result.outcome.spending)
    assert sum(book.values()) == pytest.approx(float(result.outcome.seconds.sum()))
    assert typed("report", str(path)).exit_code == 0
    assert "time by purpose" in path.with_suffix(".html").read_text(encoding="utf-8")


def test_a_campaign_notes_for_which_purposes_cpu_time_was_spent(tmp_path: Path) -> None:
    """The note of a stop holds the book; the report draws it and `--json` repeats it."""
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(
        'utility = "uniform(1)"\n[target]\ncommand = ["sleep", "0.0{pace}{instance}"]\n'
        "[configurations]\nquick = {pace = 1}\nslow = {pace = 9}\n[instances]\nvalues = [1, 2, 3, 4, 5, 6]\n"
        "[stop]\nepsilon = 0.2\n",
        encoding="utf-8",
    )
    ran = typed("run", str(scenario), "--json")
    book = json.loads(ran.stdout)["cpu_seconds_by_purpose"]
    assert book
    told = json.loads(typed("report", str(scenario), "--json").stdout)
    assert told["figures"]["spending"]["by_purpose"] == book


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"kind": "decision"}\n', "no column"),
        ("[1]\n", "expected an object"),
        ("not json\n", "not a trace"),
        ("", "empty"),
        (WORDS_FOR_NUMBERS, "expected a number"),
    ],
)
def test_what_is_no_trace_is_refused_with_a_reason(tmp_path: Path, content: str, words: str) -> None:
    """Exit code 2 territory: an error of the user's words, without a traceback."""
    (tmp_path / "bad.jsonl").write_text(content, encoding="utf-8")
    refused = typed("report", str(tmp_path / "bad.jsonl"))
    assert refused.exception is not None
    assert words in str(refused.exception)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["report", "missing.ledger"], "no ledger"),
        (["report", "{}", "--pair", "fast"], "expected two different"),
        (["report", "{}", "--pair", "fast,fast"], "expected two different"),
        (["report", "{}", "-o", "/nowhere/at/all.html"], "cannot be written"),
    ],
)
def test_wrong_words_are_told_so(tmp_path: Path, words: list[str], complaint: str) -> None:
    """Where, what, what to do."""
    with hand_written(tmp_path / "hand.ledger"):
        refused = typed(*[word.format(tmp_path / "hand.ledger") for word in words])
    assert complaint in str(refused.exception)


def test_the_certificate_says_what_was_checked_and_what_was_not(tmp_path: Path) -> None:
    """Contended runs make times doubtful; failures, losses and warnings are counted."""
    with hand_written(tmp_path / "hand.ledger") as ledger:
        running = read_story(tmp_path / "hand.ledger")
        assert "running" in summary_of_story(running).why_stopped
        ledger.noted("stopped", because="epsilon")
    story = read_story(tmp_path / "hand.ledger")
    standing = {each.standing for each in assumptions_on_record(story)}
    assert standing == {"assumed", "doubtful"}
    told = dict(quality(story))
    assert "2 failed" in told["runs"]
    assert "1 crash" in told["verdicts"]
    assert told["tried again"].startswith("1 ")
    assert summary_of_story(story).why_stopped == "it reached the epsilon asked for"


def test_spreadsheets_are_kept_from_taking_names_for_formulas(page: str) -> None:
    """The script that saves tables quotes what begins like one (W7)."""
    assert re.search(r"\[=\+\\-@\\t\\r\]", Reader(page).raw["script"])


def test_the_bar_names_the_figures_as_the_commands_do() -> None:
    """Short enough for one line on a screen; the question itself appears under the pointer."""
    story = read_story(raced_ledger())
    views = figures_of(story)
    bar = re.search(r"<nav>(.*?)</nav>", str(report_page(story, views)), flags=re.DOTALL)
    assert bar is not None
    assert re.findall(r">(\w+)</a>", bar.group(1)) == [view.name for view in views]
    assert 'title="How sure, when?"' in bar.group(1)
