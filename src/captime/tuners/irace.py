"""irace's log, an .Rdata file: read by R itself, because the format is R's.

Where R is not installed, irace's configurations are exported once on a machine that has it, as a CSV file; the message
says how.
"""

import csv
import io
import shutil
import subprocess
from pathlib import Path

from captime.errors import ScenarioError
from captime.tuners.protocol import Incumbent, TunerResult
from captime.tuners.settings_table import NOT_SET, setting_of

_SECONDS = 120.0
_INSTANCES = "captime: instances"
# The elites of the last iteration, best first; `load` is given an environment of its own.
_SCRIPT = """
arguments <- commandArgs(trailingOnly = TRUE)
held <- new.env()
load(arguments[1], envir = held)
log <- held$iraceResults
elites <- log$allElites[[length(log$allElites)]]
all <- log$allConfigurations
write.csv(all[match(elites, all$.ID.), ], row.names = FALSE)
cat("captime: instances\\n")
writeLines(as.character(log$scenario$instances))
"""
EXPORT = (
    'Rscript -e \'load("irace.Rdata"); r <- iraceResults; e <- r$allElites[[length(r$allElites)]]; '
    'write.csv(r$allConfigurations[match(e, r$allConfigurations$.ID.), ], "irace.csv", row.names = FALSE)\''
)
"""The command that writes the elites of a log into a CSV file."""
_STARTS = (b"RDX", b"\x1f\x8b", b"BZh", b"\xfd7zXZ")


def recognises(path: Path, start: bytes) -> bool:
    """Tell R's data files by their ending, or by their first bytes; they may be compressed in three ways."""
    return path.suffix.lower() in (".rdata", ".rda") or start.startswith(_STARTS)


def read(path: Path, top: int | None, study: str | None) -> TunerResult:  # noqa: ARG001 (a log is one study)
    """Read the elites of the last iteration, best first."""
    printed = _printed(path)
    table, _, rest = printed.partition(f"{_INSTANCES}\n")
    rows = list(csv.DictReader(io.StringIO(table)))
    incumbents = [
        Incumbent(
            {name: setting_of(cell) for name, cell in row.items() if not name.startswith(".") and cell not in NOT_SET},
            f"configuration {row.get('.ID.', number)}, elite {number} of {len(rows)}",
        )
        for number, row in enumerate(rows, start=1)
    ]
    if not incumbents:
        raise ScenarioError(f"{path}: the log has no elite configurations, expected at least one; let irace finish")
    return TunerResult("irace", path, incumbents[: top or 1], rest.split("\n")[:-1] or None)


def _printed(path: Path) -> str:
    program = shutil.which("Rscript")
    if program is None:
        raise ScenarioError(
            f"{path}: a log of irace is read by R, and there is no Rscript here; export it where irace was run, and "
            f"hand in the CSV file: {EXPORT}"
        )
    try:
        done = subprocess.run(  # noqa: S603 (R, with our script and the file's name)
            [program, "--vanilla", "-e", _SCRIPT, str(path.absolute())],
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ScenarioError(f"{path}: R did not read the log ({error}); export it to CSV: {EXPORT}") from None
    if done.returncode != 0:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
        raise ScenarioError(
            f"{path}: R cannot read this as a log of irace ({last[0].strip()}); expected the file that irace calls "
            "irace.Rdata"
        )
    return done.stdout.decode("utf-8", "replace")
