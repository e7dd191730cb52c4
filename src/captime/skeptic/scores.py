"""Runs with the two ends of their scores, worked out once for each configuration."""

from dataclasses import dataclass, field

from captime.arrays import FloatArray
from captime.skeptic.books import Books, Story
from captime.skeptic.lottery import Lottery


@dataclass(slots=True)
class Ends:
    """A configuration's runs with the two ends of their scores.

    Attributes:
        story: The runs.
        low: Lower ends.
        high: Upper ends.
    """

    story: Story
    low: FloatArray
    high: FloatArray

    def since(self, position: int) -> "Ends":
        """Only the runs from that position on."""
        from_here = self.story.position >= position
        return Ends(self.story, self.low[from_here], self.high[from_here])


@dataclass(slots=True)
class Scores:
    """The scores of all configurations.

    Args:
        books: What the rows say.
        lottery: The draws.
    """

    books: Books
    lottery: Lottery
    _ends: dict[int, Ends] = field(default_factory=dict)

    def of(self, config: int) -> Ends:
        """Of one configuration."""
        if config not in self._ends:
            story = self.books.story(config)
            self._ends[config] = Ends(story, *self.lottery.intervals(story))
        return self._ends[config]

    def check_captimes(self) -> str:
        """No run may be given more time than was drawn for its position; what was found."""
        for config in range(self.books.n_configs):
            self.lottery.check_captimes(config, self.of(config).story)
        runs = sum(map(len, self.books.runs))
        return f"no run was given more time than the draw of its position allows ({runs:,} runs)"
