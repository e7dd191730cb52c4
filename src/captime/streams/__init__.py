"""The instances, in an order fixed before the first run: the stream that all configurations share.

`finite` says what a stream looks like. Nothing here runs a program: an instance that has
to be made first carries the command that makes it.
"""

from captime.streams.finite import SAMPLINGS, Element, FiniteStream, GeneratedStream, Instance, InstanceStream

__all__ = ["SAMPLINGS", "Element", "FiniteStream", "GeneratedStream", "Instance", "InstanceStream"]
