"""A certificate about exactly these instances survives the way into a ledger and back; older rows read as drawn."""

import sqlite3

from captime.certificate import Certificate, Population
from captime.ledger.rows import certificate_values, certified_of
from captime.ledger.schema import CERTIFICATE


def _written_and_read(held: Certificate, version: int) -> Certificate:
    table = CERTIFICATE.at(version)
    values = certificate_values(held, (3, 1.5, 2.5, 2), bytes(32), 7)
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    connection.executescript(table.sql())
    connection.execute(table.insert(), (1, *(values[name] for name in table.names), bytes(32)))
    return certified_of(connection.execute(table.select()).fetchone()).certificate


def test_both_claims_are_stored() -> None:
    """Store the claim about the set and, inside it, the claim about the distribution."""
    drawn = Certificate(3, 0.31, 0.1, 8, 0.2, 0.9, challenger=1, mode="selection", shares=(("paired", 1.0),))
    these = Certificate(
        3, 0.05, 0.1, 8, 0.5, 0.6, mode="selection", population=Population.THESE, instances=60, instances_run=41,
        other=drawn,
    )  # fmt: skip
    assert _written_and_read(these, 2) == these


def test_a_file_of_the_first_version_reads_as_drawn() -> None:
    """Read a row without the new columns as a claim about the distribution."""
    drawn = Certificate(0, 0.2, 0.1, 4, 0.1, 0.7, shares=(("intervals", 1.0),))
    assert _written_and_read(drawn, 1) == drawn
