"""Campaigns on real programs: every run is made once, recorded, and counted; see `run`, `measurement`, `assembly`."""

from captime.campaign.measurement import survey_of, table_of
from captime.campaign.result import CampaignResult
from captime.campaign.run import run_campaign
from captime.scenario.spec import CampaignQuestion, RunSettings, StopRules

__all__ = ["CampaignQuestion", "CampaignResult", "RunSettings", "StopRules", "run_campaign", "survey_of", "table_of"]
