"""One style for all pictures: sizes, fonts and colours; matplotlib is only touched here."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from captime.errors import MissingExtra, ScenarioError

# The Okabe-Ito palette: told apart by everyone, and mostly in grey print too.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
SUFFIXES = (".png", ".pdf", ".svg")
_NO_DATE = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}


def check_picture_path(path: Path) -> None:
    """Refuse a path whose suffix does not name a picture, or any if pictures cannot be drawn; before work is done."""
    if path.suffix.lower() not in SUFFIXES:
        raise ScenarioError(
            f"the picture {path} has the suffix {path.suffix or '(none)'!r}, expected one of {', '.join(SUFFIXES)}"
        )
    if find_spec("matplotlib") is None:
        raise MissingExtra("a picture", "plot")


@contextmanager
def picture(path: Path, *, width: float, height: float) -> Iterator[Any]:
    """Axes to draw on; the file is written when the block ends. See `sheet`."""
    with sheet([path], width=width, height=height) as (axes,):
        yield axes


@contextmanager
def sheet(
    paths: Sequence[Path], *, width: float, height: float, panels: int = 1, rows: int = 1, font_size: float = 10.0
) -> Iterator[list[Any]]:
    """Axes side by side to draw on; the files are written when the block ends, one per path, the same picture in each.

    The global state of pyplot is not touched.

    Raises:
        MissingExtra: matplotlib is not installed.
        ScenarioError: the suffix is not a picture's, or the file cannot be written.
    """
    for path in paths:
        check_picture_path(path)
    from matplotlib import rc_context  # noqa: PLC0415 (an optional package, looked for above)
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    # Text stays text in PDF and SVG, so that a journal's fonts and a reader's search work.
    with rc_context({"pdf.fonttype": 42, "svg.fonttype": "none", "font.size": font_size}):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield [figure.add_subplot(rows, -(-panels // rows), number + 1) for number in range(panels)]
        for path in paths:
            try:
                # No date inside, so that the same picture is the same file.
                figure.savefig(path, dpi=200, metadata=_NO_DATE.get(path.suffix.lower()))
            except OSError as error:
                raise ScenarioError(
                    f"the picture {path} cannot be written ({error.strerror or error}); choose a folder that exists "
                    "and is yours"
                ) from error
