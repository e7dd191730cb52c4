"""Parameter spaces: what a program can be set to; drawn from, searched, read from and written to the usual files.

`Space` is the value everything is about; `read_space` and `read_space_section` make one of a file or of a scenario's
`[space]`, `Proposer` says who joins a growing pool next.
"""

from captime.spaces.formats import (
    FORMATS,
    as_configspace,
    read_configspace,
    read_space,
    read_space_section,
    section_of,
    write_space,
)
from captime.spaces.formats.section import proposer_of
from captime.spaces.lessons import Lessons, lessons_for
from captime.spaces.model import Known
from captime.spaces.parameters import Style
from captime.spaces.proposals import ArrivalOrder, Proposer, order_for
from captime.spaces.space import Space
from captime.spaces.values import Settings, Value

__all__ = [
    "FORMATS",
    "ArrivalOrder",
    "Known",
    "Lessons",
    "Proposer",
    "Settings",
    "Space",
    "Style",
    "Value",
    "as_configspace",
    "lessons_for",
    "order_for",
    "proposer_of",
    "read_configspace",
    "read_space",
    "read_space_section",
    "section_of",
    "write_space",
]
