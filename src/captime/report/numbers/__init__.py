"""The numbers behind each figure, one file each: pure functions of a story, checked against its ledger by tests.

No colours and no pixels here: `figures` makes charts of these numbers, and `--json` prints them as they are.
"""
