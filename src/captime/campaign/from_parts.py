"""From the parts of a scenario to a question and the manner in which it is answered."""

from dataclasses import replace

import numpy as np

from captime.campaign.question import Question
from captime.campaign.run import RunSettings
from captime.campaign.stop_rules import StopRules
from captime.errors import ScenarioError
from captime.scenario.machine import allowed_cores
from captime.scenario.parts import Parts


def question_of(parts: Parts) -> Question:
    """Return what is asked."""
    problem = parts.problem
    return Question(
        program=parts.program,
        stream=parts.stream,
        configs=list(parts.config_rows),
        newcomers=parts.newcomers,
        utility=parts.utility,
        delta=problem.delta,
        epsilon=problem.epsilon,
        procedure=parts.procedure_name,
        options=parts.options,
        proposer=parts.proposer,
        seed=problem.seed,
        captime_first=problem.captime_first,
        ceiling=problem.captime_limit,
        clock=parts.clock,
        time=parts.time,
        tolerance=parts.tolerance,
        population=problem.population,
        population_said=parts.population_said,
        identity=parts.identity,
    )


def run_settings_of(parts: Parts) -> RunSettings:
    """Return how it is carried out."""
    stop = parts.stop
    rules = StopRules(
        cpu=np.inf if stop.cpu is None else stop.cpu,
        wall=np.inf if stop.wall is None else stop.wall,
        until=stop.until,
    )
    return RunSettings(
        jobs=parts.jobs,
        order=parts.order,
        window=parts.window,
        stop=rules,
        isolation=parts.isolation,
        conflicts=parts.compare_answers,
        check_repeatability=parts.check_repeatability,
    )


def with_jobs(manner: RunSettings, jobs: int | None, *, oversubscribe: bool) -> RunSettings:
    """Return the same with another number of jobs, as long as they do not disturb each other."""
    if jobs is None:
        return manner
    cores = allowed_cores()
    if jobs > cores and not oversubscribe:
        raise ScenarioError(
            f"--jobs is {jobs}, but there are {cores} cores; more runs than cores disturb each other's times. Ask for "
            "fewer, or add --oversubscribe and the certificate will mention it"
        )
    return replace(manner, jobs=jobs)
