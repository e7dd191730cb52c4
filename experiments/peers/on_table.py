"""A table as a target for configurators: settings in, cost out, every second counted on captime's own bench.

The configurators choose settings; the table has only some combinations. A choice stands for the configuration of the
table that differs from it in the fewest settings. Cost is 1 - u(min(t, captime)), to be minimised.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from captime.procedures.baselines import Bench
from captime.simulation.rows import settings_of
from captime.sources.window import stream_of
from captime.utilities import parse_utility
from captime_research.experiments.gap import relative_gaps
from captime_research.experiments.rows import Row
from captime_research.experiments.setting import Setting

Incumbent = tuple[float, int]
"""CPU seconds spent until then, and who is recommended from then on."""


class BudgetSpent(Exception):  # noqa: N818 (an end, not an error)
    """The CPU time that the configurator may spend is spent."""


@dataclass
class TableTarget:
    """What a configurator optimises, and the story of its incumbents.

    Args:
        setting: Table, utility's scale and sampling.
        utility: What answers are worth.
        seed: Of the stream of instances.
        budget: CPU seconds of runs.
    """

    setting: Setting
    utility: str
    seed: int
    budget: float
    incumbents: list[Incumbent] = field(default_factory=list)

    def __post_init__(self) -> None:
        table = self.setting.table
        stream = stream_of("replace", table.groups, self.seed)
        utility = parse_utility(self.utility)
        self.captime = min(float(utility.inverse(np.array(0.1))), table.limit)
        self.bench = Bench(
            lambda config, first, last: table.seconds[config].take(stream.rows(first, last)),
            table.n_configs,
            utility,
            longest=table.limit,
            length=None,
            rng=np.random.default_rng(self.seed),
            names=table.configs,
        )
        self._settings = [settings_of(name) for name in table.configs]
        # What a name says in full or by silence: a setting that it lacks has its default value.
        values = {
            key: sorted({each.get(key, "default") for each in self._settings})
            for key in sorted({key for each in self._settings for key in each})
        }
        self.values = {key: known for key, known in values.items() if len(known) > 1}

    def nearest(self, chosen: Mapping[str, object]) -> int:
        """The configuration of the table that differs in the fewest settings; the first of several."""
        apart = [
            sum(str(value) != each.get(key, "default") for key, value in chosen.items()) for each in self._settings
        ]
        return int(np.argmin(apart))

    def cost(self, config: int, position: int) -> float:
        """Make a run, pay for it."""
        if self.bench.spent >= self.budget:
            raise BudgetSpent
        return 1.0 - float(self.bench.utilities(config, position, position + 1, self.captime)[0])

    def recommends(self, config: int) -> None:
        """The configurator's incumbent is this one now."""
        if not self.incumbents or self.incumbents[-1][1] != config:
            self.incumbents.append((self.bench.spent, config))


def rows_of(
    targets: Iterable[TableTarget], label: str, panel: str, moments: Iterable[float], setting: Setting
) -> list[Row]:
    """The relative gap of the incumbent at these moments, as the experiment `gap` writes it.

    Args:
        targets: One, or several with growing budgets, of which the last one that had an answer by then counts.
        label: What to call the configurator.
        panel: Where it belongs.
        moments: CPU seconds.
        setting: The table.
    """
    searched = list(targets)
    lost = relative_gaps(setting, searched[0].utility)
    found = []
    for moment in moments:
        known = [config for each in searched for spent, config in each.incumbents if spent <= moment]
        gap = float(lost[known[-1]]) if known else math.nan
        found.append(Row(panel, label, searched[0].seed, moment, gap, "" if known else "no answer yet"))
    return found
