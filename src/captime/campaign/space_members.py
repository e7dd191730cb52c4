"""The configurations of a campaign on a space, made when the procedure first asks for them.

A procedure knows indices only. When it orders a configuration that does not exist yet, it is proposed, written down,
and given to the program, in this order. What is on record stays as it is: resuming never proposes it anew.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from captime.campaign.transfer import EarlierCampaigns
from captime.certificate import Targets
from captime.errors import ReplayDiverged
from captime.evidence import Evidence
from captime.ledger.rows import ConfigRow
from captime.procedures.protocol import BetsLater, Procedure, ProcedureWrapper
from captime.programs.protocol import Configuration, GrowingProgram
from captime.scenario.question import AddedConfigurations, Goal, add_configurations, reached, set_goal, set_length
from captime.spaces import Lessons, Proposer, Settings

Write = Callable[[Sequence[ConfigRow]], None]


class SpaceMembers:
    """The configurations that exist.

    Args:
        proposer: Makes configurations by index.
        program: Has to be told of each.
        rows: Those that exist; the list grows.
        recorded: Those on record, which may be more: they are taken as they are, and not written again.
        write: Writes new ones down.
        earlier: What earlier campaigns can teach the model; None for nothing.
    """

    def __init__(
        self,
        proposer: Proposer,
        program: GrowingProgram,
        rows: list[ConfigRow],
        recorded: Sequence[ConfigRow],
        write: Write,
        *,
        earlier: EarlierCampaigns | None = None,
    ) -> None:
        self._late: dict[int, ConfigRow] = {}
        self._earlier = earlier
        self._lessons = Lessons()
        self._proposer = proposer
        self._program = program
        self._recorded = list(recorded)
        self._write = write
        self.rows = rows

    def expect(self, first: int, rows: Sequence[ConfigRow]) -> None:
        """These were added by the user, and have the indices from `first` on."""
        for index, row in enumerate(rows, first):
            self._late[index] = replace(row, index=index, name=f"{row.origin}-{index}")

    def grow(self, size: int, evidence: Evidence, starts: Mapping[int, int]) -> None:
        """Make sure that there are `size` configurations now.

        Args:
            size: How many.
            evidence: What is known of those there are.
            starts: The first position of the stream that counts for each, by index; 0 for those not named.
        """
        while len(self.rows) < size:
            index = len(self.rows)
            row = self._late[index] if index in self._late else self._proposed(index, evidence, starts.get(index, 0))
            if index >= len(self._recorded):
                self._write([row])
            elif row.origin != self._recorded[index].origin:
                there = self._recorded[index].name
                raise ReplayDiverged(f"configuration {index} is {there} on record, and now it would be {row.name}")
            else:
                row = self._recorded[index]
            self.rows.append(row)
            self._program.extend([configuration_of(row)])

    def _proposed(self, index: int, evidence: Evidence, start: int) -> ConfigRow:
        """Propose the configuration for `index`, skipping indices taken by configurations that the user added."""
        place = index - sum(late < index for late in self._late)
        origin, known, taught = self._proposer.origin(place), [], []
        if origin == "model":
            known = self._lessons.of(evidence.tally, [settings_of(row) for row in self.rows])
            taught = [] if self._earlier is None else self._earlier.until(start)
        # Asked even if the answer is on record: what a model proposes next depends on having been asked before.
        settings = self._proposer.propose(place, known, float(evidence.tally.seconds.sum()), taught)
        return ConfigRow(index, f"{origin}-{index}" if index else origin, {"settings": settings}, origin)


def settings_of(row: ConfigRow) -> Settings:
    """As the space knows it."""
    settings: Settings = row.settings["settings"]  # type: ignore[assignment] # written by `grow`, or by the scenario
    return settings


def configuration_of(row: ConfigRow) -> Configuration:
    """As programs know it."""
    own = {name: row.settings.get(name) for name in ("command", "answer", "exit_codes")}
    words: dict[str, Any] = {name: tuple(each) if isinstance(each, list) else each for name, each in own.items()}
    return Configuration(row.name, dict(settings_of(row)), origin=row.origin, **words)


class GrowingProcedure(ProcedureWrapper):
    """A procedure whose new configurations come into being when it asks for them.

    Args:
        procedure: Decides.
        roster: The configurations so far.
        evidence: What a model may learn from.
    """

    def __init__(self, procedure: Procedure, roster: SpaceMembers, evidence: Evidence) -> None:
        super().__init__(procedure)
        self._roster = roster
        self._evidence = evidence

    def retarget(self, epsilon: float, gamma: float | None = None, stop: str | None = None) -> None:
        """From now on these are the goals."""
        set_goal(self._procedure, Goal(epsilon, gamma, stop))

    def reached(self, epsilon: float, gamma: float, stop: str) -> bool:
        """Return whether it would be content with these."""
        return reached(self._procedure, Goal(epsilon, gamma, stop))

    def more_instances(self, length: int) -> None:
        """Extend the stream to this many positions."""
        set_length(self._procedure, length)

    def newcomers(self, count: int, earliest: int = 0) -> int:
        """From now on there are more configurations."""
        return add_configurations(self._procedure, AddedConfigurations(count, earliest))

    def ask(self, slots: int) -> Targets:
        """See the protocol."""
        targets = super().ask(slots)
        if len(targets):
            first = [0] * len(targets) if targets.first is None else targets.first.tolist()
            starts = dict(zip(targets.config.tolist(), first, strict=True))
            if isinstance(self._procedure, BetsLater):
                starts = {config: self._procedure.first_counted(config) for config in starts}
            self._roster.grow(int(targets.config.max()) + 1, self._evidence, starts)
        return targets
