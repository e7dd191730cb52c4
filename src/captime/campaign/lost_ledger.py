"""What a campaign does about a ledger that is deleted, replaced or overwritten while it runs."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from captime.campaign.result import CampaignResult
from captime.errors import CaptimeError, LedgerDamaged, ScenarioError
from captime.executors.protocol import Executor
from captime.executors.wrapper import ExecutorWrapper
from captime.ledger import Ledger, LedgerReader
from captime.ledger.file_watch import rescued_name
from captime.runs import RunOutcome

_SECONDS_BETWEEN_LOOKS = 1.0


class LedgerWatchingExecutor(ExecutorWrapper):
    """An executor that looks at something else about once a second while it waits for runs.

    Args:
        inner: Does the runs; its clock is the wall clock.
        look: Returns True if waiting is no longer of use.
    """

    def __init__(self, inner: Executor, look: Callable[[], bool]) -> None:
        super().__init__(inner)
        self._look = look

    def collect(self, timeout: float | None = None) -> list[RunOutcome]:
        """See the protocol. Returns early, with nothing, when `look` says so."""
        until = math.inf if timeout is None else self.now + timeout
        while True:
            began = self.now
            step = max(0.0, min(_SECONDS_BETWEEN_LOOKS, until - began))
            back = super().collect(step)
            # Back early with nothing: nothing is under way, or a signal has arrived.
            if back or self.now - began < step or self.now >= until or self._look():
                return back


def check_no_rescue(path: Path) -> None:
    """Refuse to begin a new campaign where the last one's ledger was lost and a copy of it waits to be put back."""
    saved = rescued_name(path)
    if not path.exists() and saved.exists():
        raise ScenarioError(
            f"there is no ledger {path}, but {saved.name} beside it holds the rows of a campaign whose ledger was "
            f"lost. Rename it to {path.name} to resume that campaign, or move it away to begin a new one"
        )


def with_what_was_lost(result: CampaignResult, ledger: Ledger) -> CampaignResult:
    """Return the result with what is to be said if the closed file does not hold what the certificate rests on."""
    happened = ledger.lost
    if _holds(ledger.path, ledger.campaign_id, result.head):
        if not happened or result.trouble is not None:
            return result
        told = (
            f"{happened}. All rows could still be brought into the ledger, and it is whole; the same command resumes "
            "the campaign"
        )
        # The copy that was made first is not needed.
        if result.rescued is not None:
            result.rescued.path.unlink(missing_ok=True)
        return replace(result, warnings=(told, *result.warnings), rescued=None)
    if result.trouble is not None and not happened:
        return result
    happened = happened or f"{ledger.path} is not the file any more that was written"
    if result.rescued is not None:
        saved = (
            f"All {result.rescued.rows:,} rows were saved in {result.rescued.path}; rename it to {ledger.path.name} to "
            "resume the campaign"
        )
    else:
        saved = "The rows could not be saved; keep what is left of the files and a copy of this output"
    valid = "No" if result.question.procedure == "survey" else "The certificate is valid, but no"
    told = f"{happened}. {valid} file of this name holds the runs that it rests on (head {result.head[:12]})"
    return replace(result, trouble=LedgerDamaged(told, saved))


def _holds(path: Path, campaign: str, head: str) -> bool:
    """Return whether the file under this name is this campaign's, up to this row."""
    try:
        with LedgerReader(path) as reader:
            return reader.campaign_id == campaign and reader.head == head
    except CaptimeError:
        return False
