"""How fio itself reads a job, once our own checks have let it."""

from __future__ import annotations

from pathlib import Path

from iopstui.fio.inspect import END, Fio, JobFacts, inspect
from iopstui.fio.job_cpus import check_cpus
from iopstui.fio.job_text import check_options, check_variables
from iopstui.linux.process.private import write_text

JOB = "job.fio"


def inspected(fio: Fio, private: Path, text: str, label: str, cwd: Path) -> JobFacts:
    """What fio makes of ``text`` in ``cwd``. ``label`` names the job within a sentence ("the job
    file x"). Nothing is started before the checks: UsageError if it is not a job, Refused for
    what no job may do.
    """
    # a job's own name keeps its spelling
    named = label[0].upper() + label[1:] if label.startswith("the ") else label
    check_variables(text, named)
    check_options(text, named)
    check_cpus(text, named)
    file = write_text(private, JOB, text + END)
    return inspect(fio, file, label, cwd)
