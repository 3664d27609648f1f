"""Messages of a lesson played as text, besides its pages."""

from __future__ import annotations

from iopstui.format import counted, latency, number
from iopstui.lesson.player import LessonRun
from iopstui.model.experiment.point import Point
from iopstui.model.lesson.pages import QuestionPage


def measured_line(point: Point) -> str:
    """Figures measured by one of its runs."""
    of = "the device's await" if point.latency_of == "await" else "mean latency"
    return (f"  measured: {number(point.iops)} IOPS, {of} "
            f"{latency(point.latency_ns)}, {point.seconds:.1f} s")  # fmt: skip


def end_lines(run: LessonRun) -> list[str]:
    """Number of correct answers."""
    asks = [step.name for step in run.lesson.steps if isinstance(step, QuestionPage)]
    verdicts = [v for v in map(run.verdict, asks) if v is not None]
    answered = [v for v in verdicts if v.chosen]
    lines = ["", "=" * 8 + " the end"]
    if answered:
        good = sum(1 for v in answered if v.correct)
        lines.append(f"{good} of {counted(len(answered), 'answer')} confirmed by the measurement.")
        unknown = sum(1 for v in answered if v.correct is None)
        if unknown:
            lines.append(f"{unknown} could not be checked here.")
    return lines
