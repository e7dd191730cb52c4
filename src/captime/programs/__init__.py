"""The program to be configured: how a request becomes a launch, and what its report means.

`command` is for command lines and wrappers, `function` for Python functions; `judge` is the one place that decides
whether a run has answered. Nothing here starts a process or reads a clock: slot supervisors do.
"""

from captime.programs.command import CommandProgram
from captime.programs.function import FunctionProgram
from captime.programs.judge import AnswerBook, Conflict
from captime.programs.protocol import Conditions, Configuration, Program, environment_of

__all__ = [
    "AnswerBook",
    "CommandProgram",
    "Conditions",
    "Configuration",
    "Conflict",
    "FunctionProgram",
    "Program",
    "environment_of",
]
