"""What the user wrote, checked, and the parts that follow from it: program, stream, configurations, question.

`models` says what a scenario file can say, `loading` reads one, `scenario` builds the parts, `identity` says what the
answer depends on. Nothing here runs the program, but for `checkup`, which is asked to.
"""

from captime.scenario.identity import difference, grown, scenario_hash
from captime.scenario.scenario import Scenario, load_scenario, scenario_of
from captime.scenario.spec import CampaignSpec
from captime.scenario.template import template

__all__ = [
    "CampaignSpec",
    "Scenario",
    "difference",
    "grown",
    "load_scenario",
    "scenario_hash",
    "scenario_of",
    "template",
]
