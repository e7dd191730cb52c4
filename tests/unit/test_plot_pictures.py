"""`captime plot`: every figure as a file for a paper, overlays of several campaigns, and complaints that help."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from captime.cli import app
from captime.report.charts.chart import Axis, AxisScale, Chart, Line, ticks
from captime.report.views import FIGURES
from report_ledgers import hand_written, raced_ledger

# Importance needs a space of parameters; these campaigns have a list of configurations.
LISTED = [name for name in FIGURES if name != "importance"]

MAGIC = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}


def typed(*words: str) -> Result:
    """A command."""
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize("kind", LISTED)
def test_every_figure_can_be_drawn(tmp_path: Path, kind: str) -> None:
    """As SVG, with text that stays text: names can be searched for."""
    made = typed("plot", kind, str(raced_ledger()), "-o", str(tmp_path / "picture.svg"))
    assert made.exit_code == 0, made.exception
    text = (tmp_path / "picture.svg").read_text(encoding="utf-8")
    assert text.startswith("<?xml")
    assert "<text" in text or "<tspan" in text


@pytest.mark.parametrize("suffix", MAGIC)
def test_several_campaigns_share_one_picture(tmp_path: Path, suffix: str) -> None:
    """Each has its own label; png, pdf and svg."""
    path = tmp_path / f"both{suffix}"
    made = typed("plot", "epsilon", str(raced_ledger()), str(raced_ledger("up")), "-o", str(path))
    assert made.exit_code == 0, made.exception
    content = path.read_bytes()
    assert content.startswith(MAGIC[suffix])
    if suffix == ".svg":
        assert b">race<" in content
        assert b">up<" in content


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["plot", "nonsense", "{}", "-o", "x.png"], "there is no figure"),
        (["plot", "heat", "{}", "{}", "-o", "x.png"], "shows one campaign"),
        (["plot", "heat", "{}", "-o", "x.gif"], "suffix"),
        (["plot", "whatif", "{}", "-o", "x.png", "--part", "9"], "has 6 charts"),
        (["plot", "parallel", "{}", "-o", "x.png"], "nothing to say"),
    ],
)
def test_what_cannot_be_drawn_is_refused(tmp_path: Path, words: list[str], complaint: str) -> None:
    """Before any work is done, with what to do instead."""
    with hand_written(tmp_path / "hand.ledger"):
        refused = typed(*[word.format(tmp_path / "hand.ledger") for word in words])
    assert complaint in str(refused.exception)
    assert not (tmp_path / "x.png").exists()


def test_axes_turn_around_and_ticks_are_numbers_people_know() -> None:
    """Low may be above high; times are 1 s, 1 min, 1 h; round numbers are round."""
    turned = AxisScale(Axis("", 10.0, 0.0), 0.0, 100.0)
    assert [turned.one(10.0), turned.one(5.0), turned.one(0.0)] == [0.0, 50.0, 100.0]
    assert [label for _, label in ticks(Axis("", 1.0, 3600.0, "time"), 400.0)] == [
        "1 s",
        "10 s",
        "1 min",
        "10 min",
        "1 h",
    ]
    assert [label for _, label in ticks(Axis("", 0.0, 1.0), 400.0)] == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
    assert [value for value, _ in ticks(Axis("", 1.0, 100.0, "log"), 400.0)] == [1.0, 10.0, 100.0]


def test_legends_name_every_label_once() -> None:
    """However many marks share it."""
    import numpy as np  # noqa: PLC0415 (one test needs it)

    line = Line(np.arange(2.0), np.arange(2.0), label="same")
    chart = Chart("t", Axis("x", 0.0, 1.0), Axis("y", 0.0, 1.0), [line, line])
    assert [label for _, label in chart.legend()] == ["same"]
