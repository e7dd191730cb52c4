"""How a run that was cut and is wanted for longer is paid."""

from typing import Literal

Accounting = Literal["restart", "resume"]
"""`restart`: again in full, from the start, as in the paper. `resume`: only the time that is added."""
