"""Check a job's expectations before it runs; refuse those that cannot be measured."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from iopstui.errors import UsageError
from iopstui.events import ExpectationChecked
from iopstui.experiment.baseline import coarser_hint
from iopstui.experiment.preview import representative_points
from iopstui.fio.job_shape import cpu_list
from iopstui.fio.job_text import expand_variables, read_job
from iopstui.fio.library import find_job
from iopstui.linux.machine.topology import online_cpus
from iopstui.linux.roots import Roots
from iopstui.model.block.target import Target
from iopstui.model.experiment.expectation import Expectation, parse_expectation, why_not_measurable
from iopstui.model.experiment.plan import OPTION, Plan
from iopstui.model.fio import jobfile
from iopstui.model.fio.jobfile import Section


def job_sections(job: str, overrides: Mapping[str, str]) -> tuple[Section, ...]:
    """The sections of a job as they will run: with overrides, and variables expanded.
    Raises UsageError."""
    text = jobfile.with_overrides(read_job(find_job(job)), overrides)
    return tuple(
        Section(
            section.name, {name: expand_variables(value) for name, value in section.options.items()}
        )
        for section in jobfile.effective_sections(text)
    )


def plan_sections(plan: Plan) -> list[tuple[Section, ...]]:
    """The sections of every kind of run in a plan: each value of each axis at least once."""
    return [
        job_sections(step.job, {**plan.options, **step.settings_of(OPTION)})
        for step in representative_points(plan)
    ]


def parse_expectations(
    texts: Sequence[str],
    tolerance: float,
    target: Target,
    jobs: Sequence[Sequence[Section]],
    varied: Collection[str] = (),
) -> tuple[Expectation, ...]:
    """The --expect of a command. UsageError for one that any of the ``jobs`` can't measure;
    ``varied`` names the axes in which the jobs differ."""
    expectations = []
    for text in texts:
        expectation = parse_expectation(text, target.tree, tolerance, target.opened)
        _check_cpu(text, expectation)
        reasons = [why_not_measurable(expectation, sections) for sections in jobs]
        problems = [reason for reason in reasons if reason is not None]
        if problems:
            scope = " at some of the points" if len(problems) < len(reasons) else ""
            raise UsageError(f"--expect {text!r} cannot be checked{scope}: {problems[0]}.",
                             _advice_for(problems[0], varied))  # fmt: skip
        expectations.append(expectation)
    return tuple(expectations)


def unchecked_error(judged: Sequence[ExpectationChecked], hint: str) -> UsageError | None:
    """The error for the first of a run's expectations that could not be checked, if there is one.
    ``hint``: how to see which figures there are."""
    for each in judged:
        option = f"--expect {each.expectation!r} cannot be checked"
        if each.measured is None:
            return UsageError(f"{option}: {each.why or 'the run has no such figure'}.", hint)
        if each.passed is None:
            name = each.expectation.partition(each.op)[0].strip()
            return UsageError(f"{option}: {each.why}.", "Run longer, e.g. --set runtime=60"
                              f"{coarser_hint(name)}.")  # fmt: skip
    return None


def _check_cpu(text: str, expectation: Expectation) -> None:
    online = set(online_cpus(Roots()))
    if (
        expectation.path[:2] == ("kernel", "cpus")
        and online
        and int(expectation.path[2]) not in online
    ):
        raise UsageError(
            f"--expect {text!r}: CPU {expectation.path[2]} does not exist here, or is offline.",
            f"There are {cpu_list(online)}",
        )


def _advice_for(reason: str, varied: Collection[str]) -> str:
    for name in varied:
        if f"({name}=" in reason:
            return f"Remove that value from --axis {name}, or expect something else."
    if "gtod_reduce" in reason:
        return "Add --set gtod_reduce=0, or use the kernel's r_await or w_await."
    if "lat_percentiles=1" in reason:
        return "Add --set lat_percentiles=1 --set clat_percentiles=0"
    if "(clat_percentiles=0)" in reason:
        return "Add --set clat_percentiles=1"
    return "Add --set unified_rw_reporting=1" if "unified_rw_reporting=1" in reason else ""
