"""Files that must not change while a campaign runs: what each launch asks its supervisor to look after."""

from collections.abc import Iterable

from captime.programs.identity import FoundCommand
from captime.streams.contents import fingerprint_of
from captime.streams.protocol import Instance
from captime.supervision.messages import Fingerprint


class Guards:
    """Remembers generated files by the first look at them; everything else was looked at when the campaign began."""

    def __init__(self) -> None:
        self._made: dict[str, Fingerprint] = {}
        self._programs: tuple[int, tuple[Fingerprint, ...]] = (0, ())

    def of_programs(self, found: Iterable[FoundCommand]) -> tuple[Fingerprint, ...]:
        """The programs, scripts and interpreters, each once."""
        commands = tuple(found)
        if len(commands) != self._programs[0]:
            files = {print_[0]: print_ for command in commands for print_ in command.fingerprints}
            self._programs = (len(commands), tuple(files.values()))
        return self._programs[1]

    def of_instance(self, instance: Instance) -> tuple[Fingerprint, ...]:
        """The instance's file, if there is one already."""
        if instance.fingerprint is not None:
            return (instance.fingerprint,)
        if instance.path is None:
            return ()
        if instance.path not in self._made:
            try:
                self._made[instance.path] = fingerprint_of(instance.path)
            except FileNotFoundError:
                # It is about to be made, for this very run.
                return ()
        return (self._made[instance.path],)
