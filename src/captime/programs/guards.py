"""Instance files that must not change while a campaign runs: what each launch asks its supervisor to look after."""

from captime.streams.contents import fingerprint_of
from captime.streams.protocol import Instance
from captime.supervision.messages import Fingerprint


class InstanceGuards:
    """Remembers generated files by the first look at them; the others were looked at when the campaign began."""

    def __init__(self) -> None:
        self._made: dict[str, Fingerprint] = {}

    def of(self, instance: Instance) -> tuple[Fingerprint, ...]:
        """Return the instance's file, if there is one already."""
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
