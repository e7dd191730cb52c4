"""The family of executors: where runs happen, and how many at once. What runs are worth is not theirs."""

from captime.executors.local import LocalExecutor
from captime.executors.protocol import Executor
from captime.executors.virtual import VirtualExecutor

__all__ = ["Executor", "LocalExecutor", "VirtualExecutor"]
