"""What a model may learn from a tally: mean scores as intervals, and how many there are."""

from collections.abc import Sequence

from captime.spaces.model import Known
from captime.spaces.values import Settings
from captime.tally import Tally


def lessons(tally: Tally, settings: Sequence[Settings]) -> list[Known]:
    """One for each configuration that the tally has heard of.

    Args:
        tally: What is known.
        settings: Of the configurations, by index.
    """
    seen = (tally.settled - tally.skipped).tolist()
    return [
        Known(
            each,
            float(tally.utility_low[index]) / max(1, seen[index]),
            float(tally.utility_high[index]) / max(1, seen[index]),
            max(0, seen[index]),
        )
        for index, each in enumerate(settings)
        if index < len(seen)
    ]
