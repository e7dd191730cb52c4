"""The skeptic: whether a ledger's certificate follows from its rows, found out without the engine that drew it.

It shares with the engine the utility and the parameter space (what was asked), the rows and the documents, and nothing
else: no procedure, no book-keeping, no interval. Its arithmetic rounds to the safe side throughout.
"""

from captime.skeptic.agreement import Trust
from captime.skeptic.audit import Audit, audit, audit_of

__all__ = ["Audit", "Trust", "audit", "audit_of"]
