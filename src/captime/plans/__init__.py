"""The family of captime plans: the one place that knows how long a run may take and what it is then worth.

A plan is fixed before the first run. Its levels only ever raise captimes. No procedure compares a runtime with a
captime: that happens here, once per plan, with the strict `<` that defines "completed".
"""

from captime.plans.ladder import Ladder
from captime.plans.protocol import Plan
from captime.plans.random_captimes import RandomCaptimes, Schedule

__all__ = ["Ladder", "Plan", "RandomCaptimes", "Schedule"]
