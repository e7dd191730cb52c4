"""What a check has found."""

from dataclasses import dataclass, field
from typing import Any, Literal

Level = Literal["well", "note", "warning", "failed"]

TARGET, STORAGE, WORDS = 7, 6, 2
"""Exit codes of what makes a campaign impossible: the program, the place of the ledger, or what the scenario says."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a check-up.

    Attributes:
        check: What was looked at.
        level: `well`; `note`, which is good to know; `warning`, which costs something; `failed`.
        found: What was found.
        advice: What to do about it.
        facts: The same in numbers, for programs.
        exit_code: Of a check-up in which this failed.
    """

    check: str
    level: Level
    found: str
    advice: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    exit_code: int = TARGET
