"""Check the CPU lists of a job: fio silently reads invalid ones as CPU 0."""

from __future__ import annotations

import re

from iopstui.errors import UsageError
from iopstui.fio.job_text import expand_variables
from iopstui.linux.machine.topology import online_cpus
from iopstui.linux.roots import Roots
from iopstui.model.fio.jobfile import effective_sections
from iopstui.text import printable

OPTIONS = ("cpus_allowed", "verify_async_cpus", "log_compression_cpus")
_PART = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")


def check_cpus(text: str, label: str, roots: Roots | None = None) -> None:
    """UsageError if a job is to run on a CPU that is not there, or on one that is not a number."""
    online = set(online_cpus(roots or Roots()))
    for section in effective_sections(text):
        for name in OPTIONS:
            value = expand_variables(section.options.get(name, ""))
            if value and "$" not in value:
                _check(f"{label}, {name}={printable(value)}", value, online)


def _check(label: str, value: str, online: set[int]) -> None:
    for part in re.split(r"[,:]", value.replace(" ", "")):
        match = _PART.fullmatch(part)
        if match is None:
            raise UsageError(f"{label}: {printable(part)!r} is not a CPU.",
                             "Write CPUs as 0,2 or 0-3.")  # fmt: skip
        first, last = int(match[1]), int(match[2] or match[1])
        missing = next((cpu for cpu in range(first, last + 1) if cpu not in online), None)
        if online and missing is not None:
            raise UsageError(
                f"{label}: CPU {missing} does not exist here, or is offline.",
                f"There are {cpu_list(online)}; iopstui devices shows which queue serves which.",
            )


def cpu_list(cpus: set[int]) -> str:
    """ "0-3,6": numbers in order, neighbours joined."""
    spans: list[list[int]] = []
    for cpu in sorted(cpus):
        if spans and cpu == spans[-1][-1] + 1:
            spans[-1] = [spans[-1][0], cpu]
        else:
            spans.append([cpu])
    return ",".join("-".join(map(str, part)) for part in spans)
