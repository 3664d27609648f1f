"""The shipped jobs as a table, one job with its explanation, and both as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from iopstui.fio.library import ShippedJob, publisher_heading
from iopstui.text import printable

NARROWEST = 40


def jobs_json(jobs: Iterable[ShippedJob]) -> list[dict[str, object]]:
    names = ("name", "title", "writes", "measures", "source", "look_at", "teaches", "run", "path",
             "text")  # fmt: skip
    return [
        {name: getattr(job, name) for name in names}
        | {"run": job.run or None, "path": str(job.path)}
        for job in jobs
    ]


def jobs_table(jobs: Sequence[ShippedJob], width: int) -> str:
    """Name, whether it writes, title; titles are wrapped to ``width`` columns, never cut. Jobs are
    grouped below the name of their origin."""
    names = [printable(job.name) for job in jobs]
    first = max((len(name) for name in names), default=4)
    indent = " " * (first + 10)
    lines = [f"{'JOB':<{first}}  {'WRITES':<6}  DESCRIPTION"]
    above = ""
    for name, job in zip(names, jobs, strict=True):
        if publisher_heading(job.source) != above:
            above = publisher_heading(job.source)
            lines += ["", printable(above)]
        head = f"{name:<{first}}  {'yes' if job.writes else 'no':<6}  "
        lines += lines_after(job.title, width, head, indent)
    lines += ["", "Explain one: iopstui jobs NAME    Run one: iopstui run [TARGET] --job NAME"]
    return "\n".join(lines)


def explain(job: ShippedJob, width: int) -> str:
    """Explain a job: its measurement, source, points to watch, and options."""
    writes = (
        "yes: on a block device only with --destroy-data repeating the device"
        if job.writes
        else "no: fio runs with --readonly"
    )
    rows = (
        ("Measures", job.measures),
        ("Look at", job.look_at),
        ("Teaches", job.teaches),
        ("Writes", writes),
        ("Source", job.source),
    )
    lines = [*lines_after(f"{job.name}: {job.title}", width, "", ""), ""]
    for label, text in rows:
        if text:
            lines += lines_after(text, width, f"{label:<10}", " " * 10)
    lines += ["", *(f"    {line}".rstrip() for line in _options(job.text)), ""]
    lines += [f"Run it:   iopstui run [TARGET] --job {job.name} [--set OPTION=VALUE]"]
    if job.run:
        lines += ["", "The documented measurement in one command (DEV is your device):", ""]
        lines += _command(printable(job.run), width)
    return "\n".join(lines)


def _command(text: str, width: int) -> list[str]:
    """A command that can be copied: each line except the last ends with a backslash."""
    lines, line = list[str](), "   "
    for part in text.replace(" --", "\n--").split("\n"):
        if len(line) + len(part) + 3 > max(width, NARROWEST) and line.strip():
            lines.append(f"{line} \\")
            line = " " * 7
        line += f" {part}"
    return [*lines, line]


def _options(text: str) -> list[str]:
    """The job file without the comment block at its top, each line safe to print."""
    lines = text.splitlines()
    while lines and (lines[0].startswith("#") or not lines[0].strip()):
        del lines[0]
    return [printable(line) for line in lines]


def lines_after(text: str, width: int, head: str, indent: str) -> list[str]:
    """``text`` in lines of ``width``: the first after ``head``, others after ``indent``."""
    return textwrap.wrap(
        printable(text), max(width, len(indent) + NARROWEST), initial_indent=head,
        subsequent_indent=indent, break_on_hyphens=False, break_long_words=False,
    ) or [head.rstrip()]  # fmt: skip
