"""Play a lesson without the screen: pages on standard output, answers from standard input."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from types import FrameType

from iopstui.cli.terminal import print_message
from iopstui.errors import EXIT_INTERRUPTED, EXIT_JOB_FAILED, EXIT_OK, IopstuiError, UsageError
from iopstui.events import Event, FrameReady, LayoutProgress, Notice, TunableChanged
from iopstui.features.lessons.model.pages import ASK, RUN_STEP, Lesson, QuestionPage
from iopstui.features.lessons.output import end_lines, flowed, head_lines, measured_line, page_lines
from iopstui.features.lessons.play.facts import read_target_facts
from iopstui.features.lessons.play.lesson_state import READY, SKIPPED, ShownPage
from iopstui.features.lessons.play.library import lesson_paths
from iopstui.features.lessons.play.player import LessonRun
from iopstui.fio.inspect import find_fio
from iopstui.format import counted, number, replace_unprintable
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots
from iopstui.model.experiment.run_request import RunRequest
from iopstui.output.narration import Narrator
from iopstui.preflight.staging import LentScratch
from iopstui.preflight.targets import choose_targets
from iopstui.safety.leftovers import clean_up_and_report
from iopstui.safety.signals import handle_stop_signals
from iopstui.safety.streams import drop_stuck
from iopstui.session.live import LiveSession
from iopstui.session.run_loop import RunLoop
from iopstui.session.tick.context import NOBODY
from iopstui.text import printable


def _how_to_name(lesson: Lesson) -> str:
    """A shipped lesson has a name, and others only a path."""
    return lesson.name if lesson.name in lesson_paths() else shlex.quote(printable(lesson.path))


def parse_answers(text: str | None, lesson: Lesson) -> dict[str, str]:
    """The answers in --answers (a,-,b), by the names of the lesson's questions. Raises UsageError
    if they don't match the questions."""
    questions = [step for step in lesson.steps if isinstance(step, QuestionPage)]
    entries = [part.strip().lower() for part in text.split(",")] if text else []
    if len(entries) > len(questions):
        raise UsageError(
            f"--answers has {counted(len(entries), 'answer')}, the lesson "
            f"{counted(len(questions), 'question')}.",
            f"See them with: iopstui lesson --check {_how_to_name(lesson)}",
        )
    answers = {}
    for question, letter in zip(questions, entries, strict=False):
        letters = [choice.letter for choice in question.choices]
        if letter in ("", "-"):
            continue
        if letter not in letters:
            raise UsageError(
                f"--answers: {letter!r} is not an answer to {question.title!r}, which has "
                f"{', '.join(letters)}.", "Give one letter for each question, - for none.",
            )  # fmt: skip
        answers[question.name] = letter
    return answers


def play_plain(
    lesson: Lesson, request: RunRequest, answers: Mapping[str, str], is_interactive: bool = True
) -> int:  # fmt: skip
    """Play a lesson from its first page to its last. Returns the exit code. ``answers`` are ignored
    if ``is_interactive`` and standard input is a terminal."""
    find_fio()
    clean_up_and_report(print_message, Roots())
    devices = read_devices(Roots())
    target, _ = choose_targets(request.targets, None, devices, Roots())
    facts = read_target_facts(target, devices, Roots())
    run = LessonRun(lesson, target, facts, request.size, request.destroy_data)
    session = LiveSession(target, devices, target, request, NOBODY)
    return LessonPlayer(
        run, session, answers, is_interactive=is_interactive and sys.stdin.isatty()
    ).play()


class LessonPlayer:
    """Plays a lesson on standard output."""

    def __init__(
        self, run: LessonRun, session: LiveSession, answers: Mapping[str, str], is_interactive: bool
    ) -> None:
        self._run = run
        self._session = session
        self._answers = answers
        self._is_interactive = is_interactive
        self._loop = RunLoop(session, self._narrate)
        self._narrator = Narrator(sys.stderr)
        self._stopped = 0
        self._closing = False

    def play(self) -> int:
        """Play the lesson. Returns the exit code."""
        handle_stop_signals(self._stop)
        self._loop.start()
        try:
            self._print_lines(head_lines(self._run.lesson))
            while not self._run.is_over and not self._stopped:
                self._play_page()
        except KeyboardInterrupt:
            self._stopped = 1
        finally:
            self._closing = True
            self._session.close()
            self._run.close()
            # the last events say which settings were restored or could not be
            for event in self._loop.rest():
                self._narrator.handle(event)
        if self._stopped:
            self._print_lines(["", f"Left on page {self._position()}."])
            return EXIT_INTERRUPTED
        self._print_lines(end_lines(self._run))
        failures = [n for n in self._run.failed if self._run.failed[n]]
        return EXIT_JOB_FAILED if failures else EXIT_OK

    def _position(self) -> str:
        page = self._run.page()
        return f"{page.number} of {page.total}" if page else "the last"

    def _stop(self, signal_number: int, frame: FrameType | None) -> None:
        if self._closing:
            drop_stuck()
            return  # do not interrupt the restoring of settings
        if not self._run.running:
            raise KeyboardInterrupt
        self._run.stop()
        if self._stopped:
            drop_stuck()
            self._loop.kill()
        else:
            self._loop.stop()
        self._stopped += 1

    def _play_page(self) -> None:
        page = self._run.page()
        assert page is not None
        self._print_lines(page_lines(page))
        if page.kind == ASK and page.state != SKIPPED:
            self._ask(page)
        elif page.kind == RUN_STEP and page.state == READY:
            self._pause("Enter runs it")
            self._measure()
            self._offer_repeats()
        elif self._run.repeatable is not None:
            self._offer_repeats()
        else:
            self._pause("Enter continues")
        if not self._stopped:
            self._run.advance()

    def _offer_repeats(self) -> None:
        """Offer to repeat a run that failed or was disturbed, as often as the user wants."""
        while not self._stopped and (run := self._run.repeatable) is not None:
            if self._pause(f"Enter continues, r repeats run {run.name}") != "r":
                return
            self._run.repeat()
            self._measure()
            self._run.end_repeat()
            page = self._run.page()
            if page is not None and page.kind != RUN_STEP:
                self._print_lines(page_lines(page))

    def _ask(self, page: ShownPage) -> None:
        letters = [letter for letter, _ in page.choices]
        answer = self._answers.get(page.name)
        if self._is_interactive:
            answer = self._prompt(letters)
        if answer is not None:
            self._run.answer(answer)
            if not self._is_interactive:
                self._print_lines([f"  Answer given: {answer})"])
        elif not self._is_interactive:
            self._print_lines(["  (No answer given; the measurement will say which was right.)"])

    def _prompt(self, letters: Sequence[str]) -> str | None:
        while True:
            line = self._read(f"Your answer ({', '.join(letters)}; Enter for none): ").strip()
            if not line:
                return None
            if line.lower().rstrip(")") in letters:
                return line.lower().rstrip(")")
            self._print_lines([f"  {printable(line)} is not one of {', '.join(letters)}."])

    def _pause(self, text: str) -> str:
        """Wait for the user's answer, and return it in lower case; "" if the lesson is not
        interactive."""
        return self._read(f"[{text}] ").strip().lower() if self._is_interactive else ""

    def _read(self, text: str) -> str:
        sys.stdout.write(replace_unprintable(text, sys.stdout.encoding))
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:  # end of file: no more answers will come
            self._is_interactive = False
            self._print_lines([""])
        return line

    def _measure(self) -> None:
        """Make the run that the page describes."""
        try:
            request, lent = self._run.request(), self._run.jobs.lent()
        except IopstuiError as error:
            self._run.give_up(error.full_text)
        else:
            self._follow(request, lent)
        run = self._run.run_page
        if run is None:
            return
        point = self._run.points.get(run.name)
        if point is not None:
            self._print_lines([measured_line(point)])
            for text in point.disturbed:
                self._print_lines(flowed(f"disturbed: {text}", "  "))
        elif not self._stopped:
            self._print_lines(flowed(f"This run failed: {self._run.failed[run.name]}", "  "))

    def _follow(self, request: RunRequest, lent: LentScratch | None) -> None:
        finished = self._loop.run(lambda: self._session.run_request(request, lent), self._take)
        self._narrator.line.clear()
        if finished is None:
            self._run.give_up("the session ended before the job did")
        else:
            self._run.feed(finished)

    def _take(self, event: Event) -> None:
        self._run.feed(event)
        if isinstance(event, FrameReady) and event.frame.fio is not None:
            now = number(event.frame.fio.total.iops)
            self._narrator.line.draw(f"  {self._run.elapsed_s:.0f} s, {now} IOPS")

    def _narrate(self, event: Event) -> None:
        is_layout = isinstance(event, LayoutProgress)
        if not is_layout:
            self._narrator.line.clear()
        is_progress = is_layout or isinstance(event, TunableChanged)
        if is_progress or (isinstance(event, Notice) and event.level != "info"):
            self._narrator.handle(event)

    def _print_lines(self, lines: Sequence[str]) -> None:
        for line in lines:
            sys.stdout.write(replace_unprintable(line.rstrip(), sys.stdout.encoding) + "\n")
        sys.stdout.flush()
