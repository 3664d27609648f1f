"""All scenarios, as data: what a session must find, and what the kernel must show."""

from __future__ import annotations

from scenario import Scenario

from scenarios import (
    accounts,
    advice,
    counts,
    cpus,
    health,
    limits,
    nothing,
    queues,
    unusual,
    without_job,
)

ALL: tuple[Scenario, ...] = (
    *nothing.SCENARIOS, *limits.SCENARIOS, *queues.SCENARIOS, *counts.SCENARIOS, *cpus.SCENARIOS,
    *health.SCENARIOS, *accounts.SCENARIOS, *unusual.SCENARIOS, *without_job.SCENARIOS,
    *advice.SCENARIOS,
)  # fmt: skip
