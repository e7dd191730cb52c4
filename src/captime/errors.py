"""Every exception of the project, on one page. The type says who has to act.

A message has four parts in one or two sentences: where it is wrong, what was found, what was expected, what to do.
Nothing below the command line catches these, prints them or ends the process.
"""


class CaptimeError(Exception):
    """Anything captime raises on purpose."""


class ScenarioError(CaptimeError):
    """You asked for something that cannot be done as written: an option, a utility, a combination."""


class UtilityError(ScenarioError):
    """A utility function was described wrongly, or is not one: it rises, leaves [0, 1] or never falls to 0."""


class TableError(CaptimeError):
    """A file of recorded runtimes cannot be read as what it says it is; the message names the place."""


class MissingExtra(CaptimeError):  # noqa: N818 (the name says what to do better than MissingExtraError would)
    """An optional package is needed; the message names the extra to install."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional package; install it with: pip install 'captime[{extra}]'")


class ScenarioDiffers(CaptimeError):  # noqa: N818 (what is so, not what went wrong)
    """The scenario is not the one this ledger was begun with; the message names every field that differs."""


class TargetProgramError(CaptimeError):
    """Your program cannot be used as it is: it does not start, never answers, contradicts itself, or was replaced."""


class LedgerError(CaptimeError):
    """Something about the file that records the runs."""


class LedgerInUse(LedgerError):  # noqa: N818 (what is so, not what went wrong)
    """Another process writes to this ledger; the message names it."""


class LedgerDamaged(LedgerError):  # noqa: N818 (what is so, not what went wrong)
    """The ledger was cut or changed; the message says which check failed.

    Args:
        found: Which check failed.
        remedy: What to do about it, as a sentence of its own; `salvage`, which does it, leaves it out.
    """

    def __init__(self, found: str, remedy: str = "") -> None:
        super().__init__(f"{found}. {remedy}" if remedy else found)
        self.found = found


class StorageTrouble(LedgerError):  # noqa: N818 (what is so, not what went wrong)
    """The disk is full, read-only or locked; nothing false was written, and the campaign can be resumed later."""


class LedgerLocked(StorageTrouble):
    """Another process keeps the file locked for longer than one waits at a time; the same call may be made again."""


class MachineUnfit(CaptimeError):  # noqa: N818 (what is so, not what went wrong)
    """The machine that runs programs is out of disk, memory, processes or descriptors, and stays so."""


class ReplayDiverged(CaptimeError):  # noqa: N818 (a fact about us, not a kind of error)
    """Replaying a ledger led to other decisions than those on record. Our fault: please report it."""


class InvariantViolated(CaptimeError):  # noqa: N818 (a fact about us, not a kind of error)
    """Something that cannot happen has happened. Our fault: please report it."""
