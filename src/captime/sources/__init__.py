"""Where runtimes come from: recorded tables, read from files or made up from a seed."""

from captime.sources.formats import read_table
from captime.sources.table import RuntimeTable

__all__ = ["RuntimeTable", "read_table"]
