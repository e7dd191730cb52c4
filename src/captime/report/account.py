"""Everything there is to tell about a campaign, real or simulated, in one shape: what words and pictures start from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from captime.certificate import Certificate


@dataclass(frozen=True, slots=True)
class Account:
    """What was asked, what came out, and what it rests on.

    Attributes:
        certificate: The statement.
        names: Of the configurations, by index.
        utility: What answers are worth, as text.
        procedure: Who decided.
        options: Its options, as given.
        bound: The bound it used.
        rounds: Decisions taken.
        runs: Executions.
        cost: What it cost, in words.
        left: How many candidates are left.
        stopped: Why it ended, in words.
        rests_on: What the certificate assumes, in words a user can check.
        first_lines: Labelled lines that come before all others, because they change how the rest is to be read.
        more: Further labelled lines.
    """

    certificate: Certificate
    names: Sequence[str]
    utility: str
    procedure: str
    options: Mapping[str, object]
    bound: str
    rounds: int
    runs: int
    cost: str
    left: int
    stopped: str
    rests_on: Sequence[str]
    first_lines: Sequence[tuple[str, str]] = ()
    more: Sequence[tuple[str, str]] = ()
