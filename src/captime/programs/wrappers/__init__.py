"""The family of wrappers: conventions by which other configurators call programs. One file per member.

A member knows which words follow the wrapper's command, where in the output its account stands, and how to read it.
Captimes are enforced by us whatever a wrapper does with the cutoff it is told.
"""

from captime.programs.wrappers.aclib import aclib1, aclib2
from captime.programs.wrappers.irace import irace
from captime.programs.wrappers.protocol import Called, Wrapper
from captime.programs.wrappers.smac3 import smac3

WRAPPERS: dict[str, Wrapper] = {each.name: each for each in (aclib1, aclib2, irace, smac3)}

__all__ = ["WRAPPERS", "Called", "Wrapper"]
