"""Read a lesson's file and report every mistake.

It is an INI file, like fio's job files: ``[lesson]`` describes it, ``[let]`` names formulas, and
the other sections are its pages in order, each headed ``[kind: name]``."""

from __future__ import annotations

import configparser
import difflib
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NoReturn

from iopstui.errors import UsageError
from iopstui.features.lessons.model.formula import (
    CONSTANTS,
    FACT_NAMESPACES,
    FACTS,
    FIO,
    FUNCTIONS,
    RUN,
    Formula,
    FormulaError,
    parse_formula,
)
from iopstui.features.lessons.model.pages import (
    ASK,
    EXPLAIN,
    PANES,
    PARTS,
    REPORT,
    RUN_STEP,
    SEE,
    TELL,
    AnswerPage,
    Choice,
    FiguresPage,
    Lesson,
    Page,
    Paragraph,
    QuestionPage,
    ReportPage,
    RunPage,
    Template,
    TextPage,
    parse_paragraphs,
    parse_template,
)
from iopstui.model.block.tunable import parse_tunable
from iopstui.model.fio.jobfile import parse_override

LONGEST_RUN_S = 600.0
MAX_STEPS = 200

_COMMON_KEYS = {"title", "text", "when", "needs", "why"}
_KEYS: Mapping[str, set[str]] = {
    TELL: _COMMON_KEYS,
    ASK: _COMMON_KEYS,  # also the keys a, b, c ... and right a ...
    RUN_STEP: _COMMON_KEYS | {"job", "fio", "set", "knob", "bind", "settle", "seconds", "look"},
    SEE: _COMMON_KEYS | {"runs", "figures"},
    EXPLAIN: _COMMON_KEYS | {"answers"},
    REPORT: _COMMON_KEYS | {"run", *PARTS},
}
_LESSON_KEYS = {"title", "teaches", "source", "minutes", "job", "fio", "set", "settle", "seconds",
                "size"}  # fmt: skip
_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)


def parse_lesson(text: str, name: str, path: str) -> Lesson:
    """Parse the file. Raises UsageError that names the file and the section and says how to fix
    it."""
    sections = list(_read_sections(text, path))
    heads = [section for section in sections if section.header == "lesson"]
    if not heads:
        raise UsageError(f"{path} is not a lesson: it has no [lesson] section.",
                         "iopstui lesson --check NAME shows how the shipped ones are made; "
                         "docs/lesson-files.md explains the format.")  # fmt: skip
    head = heads[0]
    head.check(_LESSON_KEYS)
    lets = next((section for section in sections if section.header == "let"), None)
    steps = tuple(
        _read_page(section, head) for section in sections if section.header not in ("lesson", "let")
    )
    if not steps:
        head.fail("the lesson has no pages", "Add at least [tell: start] with a text.")
    if len(steps) > MAX_STEPS:
        head.fail(f"{len(steps)} pages; a lesson has at most {MAX_STEPS}")
    lesson = Lesson(
        name=name,
        path=path,
        title=head.text("title"),
        teaches=head.text("teaches"),
        source=head.text("source"),
        minutes=head.number("minutes", 5, 0, 600),
        steps=steps,
        lets={key: _read_formula(lets, key) for key in lets.keys} if lets else {},
        size=head.text("size", "") or None,
    )
    check_names(lesson, sections)
    return lesson


def _read_sections(text: str, path: str) -> Iterator[Section]:
    parser = configparser.ConfigParser(
        interpolation=None, delimiters=("=",), comment_prefixes=("#", ";"), default_section="\0"
    )
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    try:
        parser.read_string(text, path)
    except configparser.DuplicateSectionError as error:
        raise UsageError(f"{path}: line {error.lineno}: there are two sections "
                         f"[{error.section}].", "Give each page a name of its own.",
                         ) from None  # fmt: skip
    except configparser.DuplicateOptionError as error:
        raise UsageError(f"{path}: line {error.lineno}: [{error.section}] has {error.option!r} "
                         "twice.") from None  # fmt: skip
    except configparser.MissingSectionHeaderError as error:
        raise UsageError(f"{path}: line {error.lineno}: a line before the first section.",
                         "A lesson begins with [lesson].") from None  # fmt: skip
    except configparser.ParsingError as error:
        lines = ", ".join(str(number) for number, _ in error.errors[:3])
        raise UsageError(f"{path}: line {lines}: neither a section nor NAME = VALUE.",
                         "Lines that continue a text are indented.") from None  # fmt: skip
    for header in parser.sections():
        yield Section(path, header, parser[header])


def _read_page(section: Section, head: Section) -> Page:
    kind, colon, name = (part.strip() for part in section.header.partition(":"))
    if kind not in _KEYS or not colon:
        matches = difflib.get_close_matches(kind, _KEYS, n=1)
        section.fail(
            "this is not a page",
            (f"Did you mean [{matches[0]}: ...]? " if matches else "")
            + f"A page begins with [KIND: NAME], KIND one of {', '.join(_KEYS)}.",
        )
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        section.fail(f"{name!r} can't be a name", "Use a word of a-z, 0-9 and _, e.g. [run: deep].")
    makers = {
        TELL: _read_text_page, ASK: _read_question_page, RUN_STEP: _read_run_page,
        SEE: _read_figures_page,
        EXPLAIN: _read_answer_page, REPORT: _read_report_page,
    }  # fmt: skip
    if kind != ASK:
        section.check(_KEYS[kind])
    return makers[kind](section, name, head)


def _read_common_keys(section: Section, name: str) -> dict[str, object]:
    needs = section.formula("needs")
    if needs is not None and "why" not in section.keys:
        section.fail("needs without why", "Add why = what to say where it can't be shown.")
    return {
        "name": name,
        "title": section.text("title", name.replace("_", " ")),
        "paragraphs": section.paragraphs("text"),
        "when": section.formula("when"),
        "needs": needs,
        "why": section.paragraphs("why"),
    }


def _read_text_page(section: Section, name: str, head: Section) -> Page:
    section.text("text")
    return TextPage(**_read_common_keys(section, name))  # type: ignore[arg-type]


def _read_question_page(section: Section, name: str, head: Section) -> Page:
    letters = [key for key in section.keys if len(key) == 1 and key.isalpha()]
    section.check({*_COMMON_KEYS, *letters, *(f"right {letter}" for letter in letters)})
    section.text("text")
    if len(letters) < 2 or letters != [chr(97 + n) for n in range(len(letters))]:
        section.fail("a question needs the answers a, b ... in order",
                     "Add: a = first answer, right a = a formula that is true if it is right.",
                     )  # fmt: skip
    choices = []
    for letter in letters:
        right = section.formula(f"right {letter}")
        if right is None:
            section.fail(f"answer {letter} has no condition",
                         f"Add: right {letter} = a formula, or false")  # fmt: skip
        choices.append(Choice(letter=letter, text=section.template(letter), right=right))
    return QuestionPage(choices=tuple(choices), **_read_common_keys(section, name))  # type: ignore[arg-type]


def _read_run_page(section: Section, name: str, head: Section) -> Page:
    if name in FACT_NAMESPACES or name in CONSTANTS or name in FUNCTIONS:
        section.fail(f"a run can't be called {name}: formulas mean something else by it")
    own_job = {"job", "fio"} & section.keys.keys()
    of = section if own_job else head
    inline = "\n".join(of.lines("fio")) or None
    job = of.text("job", "")
    if bool(inline) == bool(job):
        section.fail("a run needs a job", "Give one of the two, here or in [lesson]: job = NAME "
                     "(see `iopstui jobs`), or fio = with a job file below it.")  # fmt: skip
    if inline and not any(line.startswith("[") for line in inline.splitlines()):
        inline = f"[{name}]\n{inline}"
    inherited = () if own_job else tuple(_read_options(head))
    return RunPage(
        job=job or name,
        fio=inline,
        options=tuple(dict([*inherited, *_read_options(section)]).items()),
        knobs=tuple(_read_knobs(section)),
        bind=_read_bind(section),
        settle=section.number("settle", head.number("settle", 1, 0, LONGEST_RUN_S), 0,
                              LONGEST_RUN_S),
        seconds=section.number("seconds", head.number("seconds", 5, 1, LONGEST_RUN_S), 1,
                               LONGEST_RUN_S),
        look=tuple(_read_look_lines(section)),
        **_read_common_keys(section, name),  # type: ignore[arg-type]
    )  # fmt: skip


def _read_options(section: Section) -> Iterator[tuple[str, Template]]:
    for line in section.lines("set"):
        try:
            option, value = parse_override(line)
        except UsageError:
            section.fail(f"set: {line!r} is not OPTION=VALUE", "One fio option per line.")
        if option in ("runtime", "timeout", "time_based", "filename", "directory"):
            section.fail(
                f"set: {option} can't be chosen",
                "The key seconds sets the length; the target sets the place.",
            )
        yield option, section.filled("set", value)


def _read_knobs(section: Section) -> Iterator[tuple[str, Template]]:
    for line in section.lines("knob"):
        knob, _, value = line.partition("=")
        if "{" in value:
            value_of, knob = section.filled("knob", value.strip()), knob.strip()
        else:
            try:
                request = parse_tunable(line)
            except UsageError as error:
                section.fail(f"knob: {error.message}")
            value_of, knob = section.filled("knob", request.value), request.name
        yield knob, value_of


def _read_bind(section: Section) -> bool:
    text = section.text("bind", "none")
    if text not in ("queues", "none"):
        section.fail(f"bind = {text}: it is queues or none")
    return text == "queues"


def _read_look_lines(section: Section) -> Iterator[tuple[str, str]]:
    for line in section.lines("look"):
        pane, colon, sentence = (part.strip() for part in line.partition(":"))
        if pane not in PANES or not colon or not sentence:
            section.fail(f"look: {line!r} is not PANE: SENTENCE",
                         f"PANE is one of {', '.join(PANES)}; one line each.")  # fmt: skip
        yield pane, sentence


def _read_figures_page(section: Section, name: str, head: Section) -> Page:
    section.text("runs")
    figures = section.word_list("figures")
    for figure in figures:
        if figure not in RUN and not figure.startswith(f"{FIO}."):
            section.fail(f"figures: no run has a figure {figure!r}", suggest_names(figure, RUN))
    if not figures:
        section.fail("'figures' is missing", "For example: figures = iops, latency, p99")
    runs, common = section.word_list("runs"), _read_common_keys(section, name)
    return FiguresPage(runs=runs, figures=figures, **common)  # type: ignore[arg-type]


def _read_answer_page(section: Section, name: str, head: Section) -> Page:
    if "answers" not in section.keys:
        section.text("text")
    return AnswerPage(answers=section.word_list("answers"), **_read_common_keys(section, name))  # type: ignore[arg-type]


def _read_report_page(section: Section, name: str, head: Section) -> Page:
    parts = tuple((part, section.paragraphs(part)) for part in PARTS if part in section.keys)
    return ReportPage(run=section.text("run"), parts=parts, **_read_common_keys(section, name))  # type: ignore[arg-type]


def _read_formula(section: Section, key: str) -> Formula:
    if not _NAME.fullmatch(key) or keyword.iskeyword(key) or key in CONSTANTS or key in FUNCTIONS:
        section.fail(f"{key!r} can't be a name", "Use a word of a-z, 0-9 and _.")
    formula = section.formula(key)
    assert formula is not None
    return formula


# Check that the formulas of a lesson use only names that exist and figures that are already
# measured.


def check_names(lesson: Lesson, sections: Sequence[Section]) -> None:
    """Check that formulas use existing names, and only figures of earlier runs."""
    all_runs = {run.name for run in lesson.runs}
    finished: set[str] = set()
    lets: set[str] = set()
    of_let = next((section for section in sections if section.header == "let"), None)
    for key, formula in lesson.lets.items():
        assert of_let is not None
        _check_figures(of_let, key, formula.names, all_runs, all_runs, lets)
        lets.add(key)
    by_step = [section for section in sections if section.header not in ("lesson", "let")]
    questions: dict[str, QuestionPage] = {}
    answered: set[str] = set()
    for section, step in zip(by_step, lesson.steps, strict=True):
        if isinstance(step, QuestionPage):
            questions[step.name] = step
        for key, names in _figures_by_key(step):
            known_runs = all_runs if key.startswith("right ") else finished
            needed = lesson.needed_names(names) | set(names)
            _check_figures(section, key, needed, known_runs, all_runs, set(lesson.lets))
        if isinstance(step, RunPage):
            finished.add(step.name)
        for run in _shown_runs(step):
            if run not in finished:
                section.fail(f"there is no run {run!r} before it", suggest_names(run, finished))
        for name in step.answers if isinstance(step, AnswerPage) else ():
            if name not in questions:
                section.fail(
                    f"answers: no [ask: {name}] comes before it", suggest_names(name, questions)
                )
            late = _run_names(lesson.needed_names(questions[name].figures)) - finished
            if late:
                section.fail(f"answers: {name} is decided by run {late.pop()}, which comes later")
            answered.add(name)
    for name in questions.keys() - answered:
        section = next(
            section for section in by_step if section.header.partition(":")[2].strip() == name
        )
        section.fail("nothing answers this question",
                     f"Add an [explain: ...] after the runs with: answers = {name}")  # fmt: skip


def _shown_runs(step: Page) -> tuple[str, ...]:
    if isinstance(step, FiguresPage):
        return step.runs
    return (step.run,) if isinstance(step, ReportPage) else ()


def _run_names(names: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in names if name not in FACTS}


def _figures_by_key(step: Page) -> Iterator[tuple[str, Iterable[str]]]:
    for key, formula in (("when", step.when), ("needs", step.needs)):
        if formula is not None:
            yield key, formula.names
    for key, paragraphs in (("why", step.why), ("text", step.paragraphs)):
        for paragraph in paragraphs:
            yield key, paragraph.names
    if isinstance(step, QuestionPage):
        for choice in step.choices:
            yield choice.letter, choice.text.names
            yield f"right {choice.letter}", choice.right.names
    if isinstance(step, RunPage):
        for key, pairs in (("set", step.options), ("knob", step.knobs)):
            for _, template in pairs:
                yield key, template.names
    if isinstance(step, ReportPage):
        for part, paragraphs in step.parts:
            for paragraph in paragraphs:
                yield part, paragraph.names


def _check_figures(
    section: Section,
    key: str,
    names: Iterable[str],
    finished: Iterable[str],
    all_runs: Iterable[str],
    lets: Iterable[str],
) -> None:
    finished, all_runs, lets = set(finished), set(all_runs), set(lets)
    for name in sorted(names):
        first, _, figure = name.partition(".")
        if name in FACTS or name in lets:
            continue
        if first in FACT_NAMESPACES:
            section.fail(f"{key}: there is no {name}", suggest_names(name, FACTS))
        if not figure:
            section.fail(f"{key}: {name!r} is not a figure",
                         "A figure is RUN.FIGURE, e.g. deep.iops, or one of [let] "
                         "before it.")  # fmt: skip
        if first not in all_runs:
            section.fail(
                f"{key}: {name}: there is no [run: {first}]", suggest_names(first, all_runs)
            )
        if first not in finished:
            section.fail(
                f"{key}: {name}: [run: {first}] comes later, so nothing is known about it yet"
            )
        if figure not in RUN and not figure.startswith(f"{FIO}."):
            section.fail(
                f"{key}: {name}: no run has a figure {figure!r}", suggest_names(figure, RUN)
            )


# A section of a lesson's file, read key by key with types; each mistake is an error.


class Section:
    """A section of the file; every error message names it."""

    def __init__(self, label: str, header: str, keys: Mapping[str, str]) -> None:
        self._label = label
        self.header = header
        self.keys = dict(keys)

    def fail(self, problem: str, hint: str = "") -> NoReturn:
        """Raise UsageError, with the file and the section in its message."""
        raise UsageError(f"{self._label}: [{self.header}]: {problem}.", hint)

    def check(self, allowed: Iterable[str]) -> None:
        """Raise UsageError for a key that is not ``allowed``."""
        allowed_keys = sorted(allowed)
        for key in self.keys:
            if key not in allowed_keys:
                matches = difflib.get_close_matches(key, allowed_keys, n=1)
                self.fail(
                    f"{key!r} does not belong here",
                    (f"Did you mean {matches[0]}? " if matches else "")
                    + f"Known: {', '.join(allowed_keys)}",
                )

    def text(self, key: str, default: str | None = None) -> str:
        """The value of a key as one line. Raises UsageError if it is missing and has no
        ``default``."""
        value = " ".join(self.keys.get(key, "").split())
        if value:
            return value
        if default is None:
            self.fail(f"{key!r} is missing", f"Add a line: {key} = ...")
        return default

    def number(self, key: str, default: float | None, low: float, high: float) -> float:
        text = self.text(key, None if default is None else str(default))
        try:
            value = float(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            self.fail(f"{key} = {text}: that is not a number from {low:g} to {high:g}")
        return value

    def formula(self, key: str) -> Formula | None:
        if key not in self.keys:
            return None
        try:
            return parse_formula(self.keys[key])
        except FormulaError as error:
            self.fail(f"{key}: {error}")

    def template(self, key: str) -> Template:
        """The value of a key as one line with figures in it."""
        return self.filled(key, self.text(key))

    def filled(self, key: str, text: str) -> Template:
        """Parse ``text``, which comes from the key ``key``, as a text with figures in it."""
        try:
            return parse_template(text)
        except FormulaError as error:
            self.fail(f"{key}: {error}")

    def paragraphs(self, key: str) -> tuple[Paragraph, ...]:
        """The value of a key as paragraphs; empty if it is missing."""
        try:
            return parse_paragraphs(self.keys.get(key, ""))
        except FormulaError as error:
            self.fail(f"{key}: {error}")

    def lines(self, key: str) -> list[str]:
        """The non-empty lines of a key's value."""
        return [line.strip() for line in self.keys.get(key, "").splitlines() if line.strip()]

    def word_list(self, key: str) -> tuple[str, ...]:
        """The words of a key's value, separated by blanks or commas."""
        return tuple(self.keys.get(key, "").replace(",", " ").split())


def suggest_names(name: str, candidates: Iterable[str]) -> str:
    """Names that are similar to an unknown one; if there are none, all known names."""
    names = list(candidates)
    matches = difflib.get_close_matches(name, names, n=2)
    if matches:
        return f"Did you mean {' or '.join(matches)}?"
    return f"Known: {', '.join(sorted(names))}" if names else ""
