"""Slot supervisors: small processes that run one program at a time, cap it, measure its whole tree and leave nothing.

Standard library only, so that a supervisor stays small: it is started without the rest of the package (see `command`).
What a run is worth, or whether its answer is right, is not known here; `programs` judges the reports.
"""
