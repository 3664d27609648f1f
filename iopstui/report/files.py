"""`iopstui report`: what a recording holds, to be handed on: HTML, Markdown, CSV or JSON."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from iopstui import __version__
from iopstui.errors import EXIT_OK, UsageError
from iopstui.output.csv_out import CsvSink
from iopstui.output.jsonl import clean
from iopstui.output.replay import ReplayedExperiments, believed, has_experiment
from iopstui.output.sinks import EventSink
from iopstui.recording.reader import Recording, recording_path
from iopstui.recording.replay import replayed
from iopstui.report.experiment import as_data
from iopstui.report.html import html_page
from iopstui.report.markdown import markdown
from iopstui.report.story import SERIES, Run, Story, gather, points
from iopstui.report.wording import command, reconciled, repeat, repeat_experiment
from iopstui.text import printable

SCHEMA = 1
LONG = 10_000
FORMATS = ("html", "md", "csv", "json")


def report(names: Sequence[str], out: str | None, kind: str | None = None) -> int:
    """Write the report of one recording or two to ``out``, or to standard output."""
    if len(names) > 2:
        raise UsageError(f"A report covers one recording or two, not {len(names)}.")
    kind = kind or kind_of(out)
    if out is not None and out != "-":
        _check_place(Path(out), [recording_path(name) for name in names])
    _announce(names)
    content = rendered([recording_path(name) for name in names], kind)
    if out is None or out == "-":
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(content.encode(encoding, "replace").decode(encoding))
        return EXIT_OK
    write_whole(Path(out), content)
    print(f"iopstui: {printable(out)} written", file=sys.stderr)
    return EXIT_OK


def _check_place(out: Path, recordings: Sequence[Path]) -> None:
    """UsageError where no report can be written, before a long recording is read."""
    # os.path: a place that can't be examined gives its error when it is written
    if os.path.isdir(out):
        inside = printable(str(out / "report.html"))
        raise UsageError(f"{printable(str(out))} is a directory.", f"Name a file in it: {inside}")
    if not os.path.isdir(out.parent):
        raise UsageError(f"The report's directory {printable(str(out.parent))} does not exist.")
    if os.path.exists(out) and any(os.path.exists(r) and out.samefile(r) for r in recordings):
        raise UsageError(f"{printable(str(out))} is the recording itself, which a report "
                         "never overwrites.", "Choose another name.")  # fmt: skip


def _announce(names: Sequence[str]) -> None:
    """A day of samples takes a minute or more to read."""
    for name in names:
        with Recording(recording_path(name)) as recording:
            samples = recording.index().samples
        if samples > LONG:
            print(f"iopstui: reading {samples} samples of {printable(name)}", file=sys.stderr)


def kind_of(out: str | None) -> str:
    """The kind of report that a file's name asks for."""
    if out is None or out == "-":
        return "md"
    suffix = Path(out).suffix.lower().lstrip(".")
    suffix = {"htm": "html", "markdown": "md"}.get(suffix, suffix)
    if suffix not in FORMATS:
        raise UsageError(
            f"The name {printable(out)} does not say what kind of report it should be.",
            "Name it .html, .md, .csv or .json, or add --format.",
        )
    return suffix


def rendered(paths: Sequence[Path], kind: str) -> str:
    """The report's text. Raises UsageError if a file is not a recording, or holds impossible
    figures."""
    if kind == "csv" and len(paths) > 1:
        raise UsageError("CSV holds one recording's rows, not two recordings'.",
                         "Make one for each, or choose html, md or json.")  # fmt: skip
    with believed(paths):
        if kind == "csv":
            return csv_text(paths[0])
        stories = [gather(path) for path in paths]
        if kind == "html":
            return html_page(stories)
        return markdown(stories) if kind == "md" else json_text(stories)


def csv_text(path: Path) -> str:
    """A row for every frame; columns as in `iopstui run --format csv`. Of experiments a row for
    every point."""
    stream = io.StringIO()
    with Recording(path) as recording:
        sink: EventSink = CsvSink(stream, recording.header.target.on)
        if has_experiment(recording):
            sink = ReplayedExperiments("csv", recording.header, stream, io.StringIO())
        for event in replayed(recording):
            sink.handle(event)
        sink.close()
    return stream.getvalue()


def json_text(stories: Sequence[Story]) -> str:
    """Everything the page says, as data."""
    found = [_story(story) for story in stories]
    whole = {"report": SCHEMA, "iopstui": __version__, "recordings": found}
    return json.dumps(clean(whole), indent=1, allow_nan=False) + "\n"


def _story(story: Story) -> dict[str, Any]:
    series = {name: points(story, name) for name in SERIES if name not in ("t", "seconds")}
    return {
        "file": story.path.name,
        "header": asdict(story.header),
        "duration_s": story.duration,
        "samples": story.samples,
        "incomplete": story.ends or None,
        "devices": [asdict(device) for device in story.devices],
        "experiments": [
            {**as_data(one), "repeat": repeat_experiment(story, one)} for one in story.experiments
        ],
        "runs": [_run(story, run) for run in story.runs],
        "findings": [{"t": found.t, **asdict(found.finding)} for found in story.findings],
        "marks": [asdict(mark) for mark in story.marks],
        "changes": [asdict(change) for change in story.changes],
        "notices": [asdict(notice) for notice in story.notices],
        "series": {
            "t": [t for t, _ in series["fio"]],
            **{name: [value for _, value in found] for name, found in series.items()},
        },
    }


def _run(story: Story, run: Run) -> dict[str, Any]:
    finished = run.finished
    return {
        "step": run.step,
        "point": run.point or None,
        "job": run.name,
        "title": run.title,
        "begin": run.begin,
        "end": run.end,
        "whole": not run.part,
        "error": finished.error if finished else None,
        "interrupted": finished.interrupted if finished else None,
        "summary": finished.summary if finished else None,
        "frames": {"count": run.total.frames, "ios": run.total.ios, "bytes": run.total.bytes},
        "reconciled": reconciled(run),
        "latencies_ns": run.latencies(),
        "bins": run.bins,
        "verdicts": [asdict(judged) for judged in run.judged],
        "steady": asdict(run.steady) if run.steady else None,
        "repeat": None if run.point else repeat(story, run) or None,
        "command": command(run) or None,
        "job_file": run.asked.text if run.asked else None,
        "overrides": run.asked.overrides if run.asked else None,
        "binding": asdict(run.asked.binding) if run.asked and run.asked.binding else None,
    }


def write_whole(path: Path, content: str) -> None:
    """Replace the file atomically: it is the new one or still the old one."""
    directory = path.parent
    try:
        fd, name = tempfile.mkstemp(prefix=".report-", dir=directory)
        try:
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                file.write(content)
            os.chmod(name, 0o644 & ~_umask())
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise UsageError(
            f"The report {printable(str(path))} can't be written: {error.strerror}.",
            "Name a file in a directory with room that you can write to: -o /tmp/report.html",
        ) from error


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
