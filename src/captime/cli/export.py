"""`captime export`, `backup` and `salvage`: a ledger's runs as a table, its copy, and what is left of a damaged one."""

import csv
import itertools
import math
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from captime.cli.shared import LedgerArgument, ledger_of, say, say_missing
from captime.errors import MissingExtra, ScenarioError, StorageTrouble
from captime.ledger import LedgerReader
from captime.ledger.file_watch import backup, salvage
from captime.ledger.reading import FLAT_COLUMNS
from captime.report.words import message, printable

# At most this many rows are in memory at once.
_TOGETHER = 50_000
# A cell that begins so is a formula to a spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_WHOLE = {
    "sequence",
    "config",
    "position",
    "seed",
    "attempt",
    "orphan",
    "cpu_ns",
    "wall_ns",
    "exit_code",
    "signal",
    "peak_memory",
    "queue_wait_ns",
    "switches",
    "leftovers",
    "output_bytes",
    "slot",
    "started_ns",
    "ended_ns",
}
_SECONDS = {"captime", "runtime", "cost", "reported"}

Row = tuple[int | float | str | None, ...]


def export_command(
    ledger: LedgerArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="A file that ends in .csv or .parquet.")
    ],
    *,
    for_spreadsheet: Annotated[
        bool, typer.Option("--for-spreadsheet", help="Escape cells that a spreadsheet would take for a formula (CSV).")
    ] = False,
) -> None:
    """Write one line per finished run: configuration, instance, seed, captime, verdict, times, memory."""
    writers = {".csv": _write_csv, ".parquet": _write_parquet}
    if output.suffix not in writers:
        raise ScenarioError(f"{output} should end in {' or '.join(writers)}; the suffix chooses the format")
    ledger = ledger_of(ledger)
    with LedgerReader(ledger) as reader, reader.snapshot():
        say_missing(reader.missing)
        rows: Iterator[Row] = reader.flat()
        if for_spreadsheet:
            rows = (tuple(_harmless(value) for value in row) for row in rows)
        try:
            # Under another name first: a file with the right name is complete.
            with tempfile.TemporaryDirectory(dir=output.absolute().parent, prefix=".captime-") as beside:
                part = Path(beside) / output.name
                count = writers[output.suffix](rows, part)
                part.replace(output)
        except OSError as error:
            raise StorageTrouble(f"{output} cannot be written: {error.strerror or error}") from error
    say(f"{count:,} runs written to {output}")


def _harmless(value: float | str | None) -> float | str | None:
    """Text that no spreadsheet takes for a formula, and no terminal for a command."""
    if not isinstance(value, str):
        return value
    shown = printable(value)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def _write_csv(rows: Iterable[Row], path: Path) -> int:
    count = 0
    # Names may be any bytes; they come out as they went in.
    with path.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FLAT_COLUMNS)
        for row in rows:
            writer.writerow(row)
            count += 1
    return count


def _write_parquet(rows: Iterable[Row], path: Path) -> int:
    try:
        import pyarrow as pa  # noqa: PLC0415 (an optional extra is imported where it is needed)
        from pyarrow import parquet  # noqa: PLC0415 (the same)
    except ImportError:
        raise MissingExtra("writing Parquet", "parquet") from None
    kinds = {
        name: pa.int64() if name in _WHOLE else pa.float64() if name in _SECONDS else pa.string()
        for name in FLAT_COLUMNS
    }
    schema = pa.schema(list(kinds.items()))
    count, rest = 0, iter(rows)
    with parquet.ParquetWriter(path, schema) as writer:
        while block := list(itertools.islice(rest, _TOGETHER)):
            columns: list[list[Any]] = [[_valid(value) for value in column] for column in zip(*block, strict=True)]
            writer.write_table(pa.table(dict(zip(FLAT_COLUMNS, columns, strict=True)), schema=schema))
            count += len(block)
    return count


def _valid(value: float | str | None) -> float | str | None:
    """Parquet's texts are Unicode; bytes that are not become what Python writes for them."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return None if isinstance(value, float) and math.isnan(value) else value


def backup_command(
    ledger: LedgerArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The copy; must not exist.")],
) -> None:
    """Copy a ledger as it is at one moment, complete in one file.

    Copying the file alone while a campaign runs would lose the newest rows.
    """
    ledger = ledger_of(ledger)
    rows = backup(ledger, output)
    say(f"{rows:,} rows copied to {output}")


def salvage_command(
    ledger: Annotated[Path, typer.Argument(help="The damaged ledger, or its scenario; it is only read.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The new ledger; must not exist.")],
) -> None:
    """Copy the rows before the first damage into a new ledger, from which the campaign can be resumed.

    What was certified by then stays certified: a ledger that ends earlier is as valid as one that was stopped earlier.
    """
    saved = salvage(ledger_of(ledger), output)
    typer.echo(message(f"{saved.rows:,} rows saved to {output}"))
    typer.echo(message(f"It ends there because: {saved.damage}") if saved.damage else "Nothing was wrong with any row.")
