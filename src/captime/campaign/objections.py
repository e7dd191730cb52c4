"""Reasons to stop a campaign at once, whatever is certified: each looks at what came back and may object."""

from collections.abc import Callable, Sequence
from typing import NoReturn, assert_never

from captime.errors import ScenarioDiffers, TargetProgramError
from captime.ledger.rows import ConfigRow
from captime.programs.answers import AnswerBook
from captime.programs.protocol import Program
from captime.runs import Halt, RunOutcome, Status
from captime.streams.protocol import InstanceStream

Note = Callable[..., None]

# So many runs, none of which came anywhere near an answer, and the program is taken to be unusable.
_HOPELESS = 20
# Most of a space may be good for nothing: there so many configurations have to fail instead, or so many runs.
_HOPELESS_CONFIGURATIONS, _HOPELESS_ANYWAY = 25, 400


class Objections:
    """Looks at outcomes and objects by raising, after writing down why.

    Args:
        program: For the command line shown to people.
        stream: Which instance a position stands for.
        configs: Names of the configurations.
        note: Writes an event down, as `note(kind, **facts)`.
        book: Compares answers; None to go on although two configurations contradict each other.
        drawn: Whether configurations are drawn from a space. A few that fail say little of the others then.
    """

    def __init__(
        self,
        program: Program,
        stream: InstanceStream,
        configs: Sequence[ConfigRow],
        note: Note,
        book: AnswerBook | None,
        *,
        drawn: bool = False,
    ) -> None:
        self._program = program
        self._stream = stream
        self._configs = configs
        self._note = note
        self._book = book
        self._drawn = drawn
        self._failures: list[RunOutcome] | None = []

    def __call__(self, outcomes: Sequence[RunOutcome]) -> None:
        """Look at what came back, which is written down already."""
        for outcome in outcomes:
            self._stop_at_once(outcome)
            self._compare_answers(outcome)
        self._lose_hope(outcomes)

    def recall(self, outcomes: Sequence[RunOutcome]) -> None:
        """These came back in an earlier life of the campaign: a contradiction among them is still one."""
        for outcome in outcomes:
            self._compare_answers(outcome)
            if outcome.status.meaning.counts:
                self._failures = None

    def _stop_at_once(self, outcome: RunOutcome) -> None:
        if outcome.halt is None:
            return
        self._note("stopped", because=outcome.detail)
        match outcome.halt:
            case Halt.FILE_CHANGED:
                self._file_changed(outcome)
            case Halt.ABORTED | Halt.NOT_STARTED | Halt.PATTERN_TOO_SLOW:
                raise TargetProgramError(f"{outcome.detail}. {self._how_started(outcome)}{_last_words(outcome)}")
            case _:
                assert_never(outcome.halt)

    def _file_changed(self, outcome: RunOutcome) -> NoReturn:
        path = outcome.changed_file
        if path != self._stream.at(outcome.request.instance).instance.path:
            raise ScenarioDiffers(
                f"{path} changed while the campaign was running. Runs made with it so far stand; the run under way "
                "does not count. Put the old program back to resume, or begin a new ledger with the new one"
            )
        raise TargetProgramError(
            f"{path} changed or vanished while the campaign was running; the run under way does not count. "
            "Put the instance back as it was to resume"
        )

    def _compare_answers(self, outcome: RunOutcome) -> None:
        """Two configurations that contradict each other: one of them is wrong, and nobody knows which."""
        if self._book is None or not outcome.status.meaning.answered or outcome.measured is None:
            return
        instance = self._stream.at(outcome.request.instance).instance.name
        found = self._book.note(instance, outcome.request.config, outcome.measured.answer)
        if found is None:
            return
        names = [self._configs[config].name for config in (found.first, found.second)]
        self._note("conflict", instance=instance, configs=names)
        raise TargetProgramError(
            f"on instance {found.instance!r} {names[0]} answered {found.first_answer!r} and {names[1]} answered "
            f"{found.second_answer!r}; one of them is wrong, so nothing is certified. Give the right answers "
            "(instances.answers), a verifier (target.verifier), or leave the wrong configuration out"
        )

    def _lose_hope(self, outcomes: Sequence[RunOutcome]) -> None:
        """A program that fails whatever it is given is not worth a night of runs."""
        if self._failures is None:
            return
        for outcome in outcomes:
            match outcome.status:
                case Status.COMPLETED | Status.CAPPED | Status.ABANDONED:
                    self._failures = None
                    return
                case Status.FAILED:
                    self._failures.append(outcome)
                case Status.LOST:
                    pass
                case _:
                    assert_never(outcome.status)
        if self._hopeless(self._failures):
            last = self._failures[-1]
            self._note("stopped", because="every run failed")
            raise TargetProgramError(
                f"the first {len(self._failures)} runs all failed, the last one so: {last.detail or 'no answer'}. "
                f"{self._how_started(last)}{_last_words(last)}. `captime doctor` looks into it"
            )

    def _hopeless(self, failures: Sequence[RunOutcome]) -> bool:
        if not self._drawn:
            return len(failures) >= _HOPELESS
        tried = len({outcome.request.config for outcome in failures})
        return tried >= _HOPELESS_CONFIGURATIONS or len(failures) >= _HOPELESS_ANYWAY

    def _how_started(self, outcome: RunOutcome) -> str:
        element = self._stream.at(outcome.request.instance)
        return self._program.how_started(outcome.request.config, element.instance, element.seed)


def _last_words(outcome: RunOutcome) -> str:
    """What the program said last, if anything."""
    measured = outcome.measured
    said = b"" if measured is None else (measured.stderr_tail or measured.stdout_tail)
    text = said.decode("utf-8", "replace").strip()
    return f"; it said: {text[-400:]!r}" if text else ""
