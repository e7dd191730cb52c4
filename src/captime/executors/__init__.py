"""The family of executors: where runs happen, and how many at once. What runs are worth is not theirs."""

import sys

from captime.executors.protocol import Executor
from captime.executors.virtual import VirtualExecutor

if sys.platform != "win32":
    # Needs processes as POSIX knows them; recorded runtimes can be replayed anywhere.
    from captime.executors.local import LocalExecutor

__all__ = ["Executor", "LocalExecutor", "VirtualExecutor"]
