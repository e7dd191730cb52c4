"""Campaigns on real programs: every run is made once, written down, and counted; see `run`, `measuring`, `library`."""

from captime.campaign.measuring import measure, table_of
from captime.campaign.question import Question
from captime.campaign.result import CampaignResult
from captime.campaign.run import Manner, run_campaign
from captime.campaign.stopping import StopRules

__all__ = ["CampaignResult", "Manner", "Question", "StopRules", "measure", "run_campaign", "table_of"]
