"""The family of other tuners' files: from a file to the configurations that its tuner recommends.

One file per member, each with the two functions of `TunerFormat`; this door tells them apart. Nothing is imported from
the tuners themselves.
"""

from pathlib import Path

from captime.errors import ScenarioError
from captime.files import open_limited
from captime.tuners import irace, optuna, settings_table, smac3
from captime.tuners.protocol import Incumbent, TunerFormat, TunerResult

TUNERS: dict[str, TunerFormat] = {"optuna": optuna, "smac3": smac3, "irace": irace, "csv": settings_table}
"""By name, in the order in which they are asked whether a file is theirs."""
_LARGEST = 1 << 40
_START = 4096

__all__ = ["TUNERS", "Incumbent", "TunerResult", "read_incumbents"]


def read_incumbents(path: Path, top: int | None = None, study: str | None = None) -> TunerResult:
    """Read what a tuner recommends.

    Args:
        path: A storage of Optuna, a run history of SMAC3, a log of irace, or a CSV file of settings.
        top: How many configurations, best first; left out, the incumbent, and all rows of a CSV file.
        study: Study to read, if Optuna's storage has several.
    """
    try:
        with open_limited(path, _LARGEST) as stream:
            start = stream.read(_START)
    except OSError as error:
        raise ScenarioError(
            f"{path} cannot be read ({error.strerror}); expected a file that a tuner has written, or a CSV file"
        ) from None
    for name, each in TUNERS.items():
        if each.recognises(path, start):
            if study is not None and name != "optuna":
                raise ScenarioError(f"--study is {study!r}, but {path} is a file of {name}, which has no studies")
            return each.read(path, top, study)
    raise ScenarioError(
        f"{path} is of no kind that is known here; expected a storage of Optuna (SQLite or journal), SMAC3's "
        "runhistory.json, a log of irace (.Rdata), or a .csv file with a column per setting"
    )
