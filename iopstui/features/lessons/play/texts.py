"""Fill measured values into the texts of a lesson's pages."""

from __future__ import annotations

from collections.abc import Iterator

from iopstui.errors import UsageError
from iopstui.features.lessons.model.figures import unit_of
from iopstui.features.lessons.model.pages import (
    AnswerPage,
    FiguresPage,
    Page,
    QuestionPage,
    ReportPage,
    RunPage,
)
from iopstui.features.lessons.model.report import report_parts
from iopstui.features.lessons.model.text import VisibleParagraph
from iopstui.features.lessons.play.jobs import LessonJobs
from iopstui.features.lessons.play.lesson_state import LessonState
from iopstui.features.lessons.play.page import Block, disturbed_text, figures_table
from iopstui.fio.job_text import describe_job


def figures_of_page(step: Page) -> set[str]:
    """The figures that a page shows or judges."""
    names = {name for text in step.paragraphs for name in text.names}
    if isinstance(step, FiguresPage):
        names |= {f"{run}.{figure}" for run in step.runs for figure in step.figures}
    if isinstance(step, RunPage):
        names.add(f"{step.name}.iops")
    return names


class LessonTexts:
    """Texts of the pages of one lesson."""

    def __init__(self, state: LessonState, jobs: LessonJobs) -> None:
        self._state = state
        self._jobs = jobs

    def blocks(self, step: Page) -> list[Block]:
        """The content of a page; empty if all of it depends on unknown figures."""
        blocks: list[Block] = []
        if isinstance(step, AnswerPage):
            verdicts = [self._state.verdict(name) for name in step.answers]
            blocks += [
                VisibleParagraph(verdict.text) for verdict in verdicts if verdict is not None
            ]
        if isinstance(step, FiguresPage):
            runs = [run for run in step.runs if run in self._state.points]
            if not runs:
                return []
            blocks.append(figures_table(step, runs, self._state.lookup))
        if isinstance(step, AnswerPage):
            blocks += self._state.conclusions(step.paragraphs)
        else:
            blocks += self._state.texts(step.paragraphs)
        blocks += self._disturbed_note(step)
        if isinstance(step, RunPage):
            blocks += self._describe_run(step)
        if isinstance(step, ReportPage):
            blocks += self._report(step)
        return blocks

    def _disturbed_note(self, step: Page) -> list[VisibleParagraph]:
        """Say that runs of the page were disturbed, unless a verdict has said so."""
        if any(self._state.verdict(name) for name in getattr(step, "answers", ())):
            return []
        text = disturbed_text(self._state.disturbances(figures_of_page(step)))
        return [VisibleParagraph(text[0].upper() + text[1:])] if text else []

    def choices(self, question: QuestionPage) -> Iterator[tuple[str, str]]:
        """Letter and text of each answer."""
        for choice in question.choices:
            yield choice.letter, choice.text.fill(self._state.lookup, unit_of) or ""

    def _describe_run(self, run: RunPage) -> list[VisibleParagraph]:
        if run.name in self._state.failed:
            return [VisibleParagraph(f"This run failed: {self._state.failed[run.name]}")]
        try:
            knobs = [f"{name}={value}" for name, value in self._jobs.fill_values(run.knobs)]
            description = describe_job(self._jobs.job_text(run))
        except UsageError as error:
            return [VisibleParagraph(error.message)]
        lines = [description, f"{run.settle:g} s to settle, {run.seconds:g} s measured"]
        set_ = [f"{name}={value}" for name, value in self._jobs.fill_values(run.options)]
        for label, parts in (("fio options: ", set_), ("tunables: ", knobs)):
            if parts:
                lines.append(label + ", ".join(parts))
        return [VisibleParagraph("\n".join(lines), kept=True)]

    def _report(self, step: ReportPage) -> list[VisibleParagraph]:
        document = self._state.documents.get(step.run)
        if not document:
            return []
        explained = dict(step.parts)
        texts: list[VisibleParagraph] = []
        for part, lines in report_parts(document):
            texts.append(VisibleParagraph("\n".join(lines), kept=True))
            texts += self._state.texts(explained.get(part, ()))
        return texts
