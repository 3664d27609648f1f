"""Ask fio how it reads a job, after our own checks."""

from __future__ import annotations

from pathlib import Path

from iopstui.fio.inspect import END, Fio, JobFacts, inspect
from iopstui.fio.job_shape import check_cpus
from iopstui.fio.job_text import check_options, check_variables
from iopstui.linux.process.private import write_text
from iopstui.model.fio import jobfile

JOB = "job.fio"
_CLOCKS = frozenset({"clock_gettime", "gettimeofday", "cpu"})
WRITING_MODES = frozenset({
    "write", "randwrite", "rw", "readwrite", "randrw", "trim", "randtrim", "trimwrite",
    "randtrimwrite",
})  # fmt: skip
"""Values of ``rw`` that fio's ``--readonly`` refuses."""


def inspect_text(fio: Fio, private: Path, text: str, label: str, cwd: Path) -> JobFacts:
    """Ask fio what it makes of ``text`` in ``cwd``. ``label`` names the job within a sentence ("the
    job file x"). Nothing is started before our own checks. Raises UsageError if the text is not a
    job, Refused for options that no job may use."""
    # a label that is a job's own name keeps its spelling
    subject = label[0].upper() + label[1:] if label.startswith("the ") else label
    check_variables(text, subject)
    check_options(text, subject)
    check_cpus(text, subject)
    file = write_text(private, JOB, _without_clocksource(text) + END)
    return inspect(fio, file, label, cwd, declares_writes(text))


def _without_clocksource(text: str) -> str:
    """The same job without ``clocksource``, which changes neither the files that fio opens nor what
    it writes: fio spends 60 ms of CPU on calibrating each clock as soon as it reads the option. A
    value that fio may refuse is kept."""
    clocks = {section.options.get("clocksource") for section in jobfile.sections(text)} - {None}
    if clocks and clocks <= _CLOCKS:
        return jobfile.with_overrides(text, {}, removed=["clocksource"])
    return text


def declares_writes(text: str) -> bool:
    """Whether the ``rw`` of a section plainly says that it writes. Then fio need not be started
    once more, which takes a tenth of a second, to find out whether the job only reads. False in
    unclear cases."""
    for section in jobfile.effective_sections(text):
        modes = {section.options.get(name) for name in ("rw", "readwrite")} - {None}
        if len(modes) == 1 and str(modes.pop()).partition(":")[0] in WRITING_MODES:
            return True
    return False
