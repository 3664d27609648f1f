"""Lesson files: the shipped ones are valid, mistakes in others are named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.errors import Missing, UsageError
from iopstui.features.lessons.model.file import parse_lesson
from iopstui.features.lessons.model.formula import FACTS, RUN, Value
from iopstui.features.lessons.model.pages import PARTS, AnswerPage, QuestionPage, ReportPage
from iopstui.features.lessons.play import library as lessons
from iopstui.features.lessons.play.library import find_lesson, load_lesson, shipped_lessons
from iopstui.fio.library import find_job, load_job
from iopstui.model.block.tunable import TUNABLES

SHIPPED = shipped_lessons()
each_lesson = pytest.mark.parametrize("lesson", SHIPPED, ids=lambda lesson: lesson.name)

GOOD = """
[lesson]
title = T
teaches = x
source = y
job = randread-4k

[let]
gain = deep.iops / one.iops

[ask: more]
text = more?
a = yes
right a = gain > 1
b = no
right b = gain <= 1

[run: one]
set = iodepth=1

[run: deep]
set = iodepth=4
knob = nomerges=0
look = iops: up
needs = known(one.iops) and device.queues > 0
why = no

[see: both]
runs = one, deep
figures = iops, latency

[explain: more]
answers = more
text = {gain :x}
"""


def parsed(text: str) -> object:
    return parse_lesson(text, "own", "own.ini")


def test_a_whole_lesson() -> None:
    lesson = parse_lesson(GOOD, "own", "own.ini")
    assert [step.header for step in lesson.steps] == [
        "ask: more", "run: one", "run: deep", "see: both", "explain: more",
    ]  # fmt: skip
    assert lesson.runs[1].seconds == 5 and lesson.seconds == 12
    assert lesson.needed_names({"gain"}) == {"deep.iops", "one.iops"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[lesson]", "[lession]", "is not a lesson"),
        ("title = T\n", "", "[lesson]: 'title' is missing"),
        ("job = randread-4k\n", "", "[run: one]: a run needs a job"),
        ("[see: both]", "[seee: both]", "[seee: both]: this is not a page"),
        ("[see: both]", "[see: Both ways]", "can't be a name"),
        ("[run: one]", "[run: device]", "can't be called device"),
        ("[run: one]", "[run: deep]", "two sections [run: deep]"),
        ("set = iodepth=1", "sett = iodepth=1", "[run: one]: 'sett' does not belong here"),
        ("set = iodepth=1", "set = iodepth", "is not OPTION=VALUE"),
        ("set = iodepth=1", "set = runtime=9", "runtime can't be chosen"),
        ("set = iodepth=1", "set = iodepth={one.iops}", "comes later"),
        ("knob = nomerges=0", "knob = nomerges=7", "nomerges takes 0, 1, 2"),
        ("knob = nomerges=0", "knob = nomerge=0", "is not a tunable"),
        ("look = iops: up", "look = iopz: up", "is not PANE: SENTENCE"),
        ("look = iops: up", "settle = soon", "is not a number"),
        ("look = iops: up", "seconds = 0", "is not a number"),
        ("why = no\n", "", "needs without why"),
        ("runs = one, deep", "runs = one, deeep", "no run 'deeep' before it"),
        ("figures = iops, latency", "figures = iops, latencies", "no run has a figure"),
        ("figures = iops, latency", "text = x", "'figures' is missing"),
        ("right b = gain <= 1\n", "", "answer b has no condition"),
        ("b = no\nright b = gain <= 1\n", "", "a question needs the answers"),
        ("b = no\nright b", "c = no\nright c", "a question needs the answers"),
        ("right a = gain > 1", "right a = gain >", "not a formula"),
        ("right a = gain > 1", "right a = gain = 1", "equal is written =="),
        ("right a = gain > 1", "right a = gian > 1", "'gian' is not a figure"),
        ("right a = gain > 1", "right a = deeep.iops > 1", "there is no [run: deeep]"),
        ("right a = gain > 1", "right a = deep.iopps > 1", "no run has a figure 'iopps'"),
        ("right a = gain > 1", "right a = device.nam == 'x'", "there is no device.nam"),
        ("gain = deep", "ms = deep", "'ms' can't be a name"),
        ("gain = deep.iops / one.iops", "gain = gain + 1", "'gain' is not a figure"),
        ("answers = more", "answers = less", "no [ask: less] comes before"),
        ("answers = more\n", "", "[ask: more]: nothing answers this question"),
        ("text = {gain :x}", "text = {gain :y}", "form 'y' is not one of"),
        ("text = {gain :x}", "text = {gain", "brace"),
        ("text = {gain :x}", "text = {", "brace"),
        ("text = more?", "text = one was {one.iops}", "comes later"),
        ("text = more?\n", "", "'text' is missing"),
        ("\n[lesson]", "\nstray = 1\n[lesson]", "line 2: a line before the first section"),
        ("teaches = x", "teaches x", "neither a section nor"),
        ("teaches = x", "teaches = x\nteaches = y", "has 'teaches' twice"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_section(old: str, new: str, words: str) -> None:
    assert old in GOOD
    with pytest.raises(UsageError) as caught:
        parsed(GOOD.replace(old, new, 1))
    assert "own.ini" in caught.value.message
    assert words in f"{caught.value.message} {caught.value.hint}"


NO_JOB = (
    "[run: one]: a run needs a job.",
    "Give one of the two, here or in [lesson]: job = NAME (see `iopstui jobs`), or fio = with a "
    "job file below it.",
)
KINDS = "A page begins with [KIND: NAME], KIND one of tell, ask, run, see, explain, report."
WORD = "Use a word of a-z, 0-9 and _, e.g. [run: deep]."
CHOSEN = "The key seconds sets the length; the target sets the place."
ANSWERS = "Add: a = first answer, right a = a formula that is true if it is right."


@pytest.mark.parametrize(
    ("old", "new", "says", "hint"),
    [
        ("title = T\n", "", "[lesson]: 'title' is missing.", "Add a line: title = ..."),
        ("job = randread-4k\n", "", *NO_JOB),
        ("job = randread-4k\n", "job = randread-4k\nfio = rw=read\n", *NO_JOB),
        ("[see: both]", "[seee: both]", "[seee: both]: this is not a page.",
         f"Did you mean [see: ...]? {KINDS}"),
        ("[see: both]", "[zzz: both]", "[zzz: both]: this is not a page.", KINDS),
        ("[see: both]", "[see]", "[see]: this is not a page.",
         f"Did you mean [see: ...]? {KINDS}"),
        ("[see: both]", "[see: Both]", "[see: Both]: 'Both' can't be a name.", WORD),
        ("[run: one]", "[run: if]", "[run: if]: 'if' can't be a name.", WORD),
        *(("[run: one]", f"[run: {name}]",
           f"[run: {name}]: a run can't be called {name}: formulas mean something else by it.", "")
          for name in ("device", "ms", "known", "host", "why")),
        ("set = iodepth=1", "sett = iodepth=1", "[run: one]: 'sett' does not belong here.",
         "Did you mean set? Known: bind, fio, job, knob, look, needs, seconds, set, settle, text, "
         "title, when, why"),
        ("set = iodepth=1", "set = iodepth", "[run: one]: set: 'iodepth' is not OPTION=VALUE.",
         "One fio option per line."),
        *(("set = iodepth=1", f"set = {option}=9", f"[run: one]: set: {option} can't be chosen.",
           CHOSEN)
          for option in ("runtime", "timeout", "time_based", "filename", "directory")),
        ("look = iops: up", "bind = all", "[run: deep]: bind = all: it is queues or none.", ""),
        ("look = iops: up", "seconds = 0",
         "[run: deep]: seconds = 0: that is not a number from 1 to 600.", ""),
        ("look = iops: up", "settle = 601",
         "[run: deep]: settle = 601: that is not a number from 0 to 600.", ""),
        ("why = no\n", "", "[run: deep]: needs without why.",
         "Add why = what to say where it can't be shown."),
        ("figures = iops, latency", "figures =", "[see: both]: 'figures' is missing.",
         "For example: figures = iops, latency, p99"),
        ("right b = gain <= 1\n", "", "[ask: more]: answer b has no condition.",
         "Add: right b = a formula, or false"),
        ("b = no\nright b = gain <= 1\n", "",
         "[ask: more]: a question needs the answers a, b ... in order.", ANSWERS),
        ("right a = gain > 1", "right a = gian > 1",
         "[ask: more]: right a: 'gian' is not a figure.",
         "A figure is RUN.FIGURE, e.g. deep.iops, or one of [let] before it."),
        ("gain = deep", "ms = deep", "[let]: 'ms' can't be a name.",
         "Use a word of a-z, 0-9 and _."),
        ("answers = more\n", "", "[ask: more]: nothing answers this question.",
         "Add an [explain: ...] after the runs with: answers = more"),
    ],
)  # fmt: skip
def test_a_mistake_and_what_helps(old: str, new: str, says: str, hint: str) -> None:
    assert old in GOOD
    with pytest.raises(UsageError) as caught:
        parsed(GOOD.replace(old, new, 1))
    assert (caught.value.message, caught.value.hint) == (f"own.ini: {says}", hint)


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        ("stray = 1\n", "line 1: a line before the first section.",
         "A lesson begins with [lesson]."),
        ("[a]\n[a]\n", "line 2: there are two sections [a].",
         "Give each page a name of its own."),
        ("[a]\nx = 1\nx = 2\n", "line 3: [a] has 'x' twice.", ""),
        ("[a]\nx\ny\n", "line 2, 3: neither a section nor NAME = VALUE.",
         "Lines that continue a text are indented."),
    ],
)  # fmt: skip
def test_what_is_no_file_of_sections(text: str, says: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parsed(text)
    assert (caught.value.message, caught.value.hint) == (f"own.ini: {says}", hint)


def test_what_holds_where_a_lesson_does_not_say() -> None:
    lesson = parse_lesson(GOOD, "own", "own.ini")
    assert (lesson.minutes, lesson.size, lesson.title, lesson.teaches, lesson.source) == (
        5, None, "T", "x", "y"
    )  # fmt: skip
    one, deep = lesson.runs
    assert (one.job, one.fio, one.settle, one.seconds, one.bind) == (
        "randread-4k", None, 1, 5, False
    )  # fmt: skip
    assert (one.title, one.when, one.needs, one.why, one.look) == ("one", None, None, (), ())
    assert deep.look == (("iops", "up"),) and deep.needs is not None
    head = "[lesson]\nminutes = 7\nsize = 64m\nsettle = 2\nseconds = 9\nset = bs=8k\n  rw=read"
    more = GOOD.replace("[lesson]", head).replace("set = iodepth=1", "bind = queues\nset = bs=1k")
    lesson = parse_lesson(more, "own", "own.ini")
    one, deep = lesson.runs
    assert (lesson.minutes, lesson.size, one.settle, one.seconds) == (7, "64m", 2, 9)
    assert one.bind and [name for name, _ in one.options] == ["bs", "rw"]
    assert [name for name, _ in deep.options] == ["bs", "rw", "iodepth"]
    inline = GOOD.replace("set = iodepth=1", "fio =\n  rw=read\n  bs=4k")
    own = parse_lesson(inline, "own", "own.ini").runs[0]
    assert (own.job, own.fio) == ("one", "[one]\nrw=read\nbs=4k")


def test_an_answer_before_the_run_that_decides_it() -> None:
    steps = GOOD.split("\n[")
    early = "\n[".join([*steps[:4], steps[-1], *steps[4:-1]])
    with pytest.raises(UsageError, match="comes later"):
        parsed(early.replace("text = {gain :x}", "text = so"))


@given(st.text(max_size=300))
def test_any_text_is_a_lesson_or_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        parsed(text)


@given(st.data())
def test_a_damaged_lesson_is_one_or_a_usage_error(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(GOOD)))
    cut = data.draw(st.integers(0, 30))
    junk = data.draw(st.text(max_size=5))
    try:
        parsed(GOOD[:at] + junk + GOOD[at + cut :])
    except UsageError as error:
        assert "own.ini" in error.message


def test_the_one_that_the_page_shows(root: Path) -> None:
    page = (root / "docs" / "lesson-files.md").read_text()
    text = page.partition("```ini\n")[2].partition("```")[0]
    lesson = parse_lesson(text, "own", "lesson-files.md")
    assert [step.kind for step in lesson.steps] == ["tell", "ask", "run", "run", "see", "explain"]


# -- the shipped ones


def test_the_shipped_lessons_are_numbered_from_1_to_9() -> None:
    assert [one.name.partition("-")[0] for one in SHIPPED] == [f"0{n}" for n in range(1, 10)]


@each_lesson
def test_a_shipped_lesson_is_one_that_can_be_finished(lesson: lessons.Lesson) -> None:
    assert lesson.source and 1 <= lesson.minutes <= 10
    assert 10 <= lesson.seconds <= 60, "one to three minutes with the reading"
    assert any(isinstance(step, QuestionPage) for step in lesson.steps)
    answered = {n for step in lesson.steps if isinstance(step, AnswerPage) for n in step.answers}
    assert answered == {step.name for step in lesson.steps if isinstance(step, QuestionPage)}
    for run in lesson.runs:
        assert run.look, "every run says where to look"
        assert not load_job(find_job(run.job)).writes, "the shipped ones only read"
        assert {name for name, _ in run.knobs} <= TUNABLES.keys()
        if run.knobs:
            guards = [f for f in (run.when, run.needs) if f is not None]
            known = {n for f in guards for n in lesson.needed_names(f.names)}
            assert known, "a knob may not be there to turn"


@each_lesson
def test_tables_and_commands_fit_80_columns(lesson: lessons.Lesson) -> None:
    lines = Path(lesson.path).read_text("utf-8").splitlines()
    kept = [line.strip()[2:] for line in lines if line.strip().startswith("| ")]
    assert [line for line in kept if len(line) > 74] == []


def test_the_last_one_explains_every_line() -> None:
    (report,) = [step for step in SHIPPED[6].steps if isinstance(step, ReportPage)]
    assert [part for part, _ in report.parts] == list(PARTS)


def test_every_figure_is_explained() -> None:
    assert all(one.meaning for one in (*RUN.values(), *FACTS.values()))


@pytest.mark.parametrize(("seen", "right"), [(0.02, ""), (0.9, "b")])
def test_the_few_reads_that_miss_a_warm_cache_decide_nothing(seen: float, right: str) -> None:
    lesson = find_lesson("4")
    known = {"cold.iops": 1e5, "cold.device_iops": 1e5 * seen, "cold.slat": 4e3, "cold.wait": 7e4,
             "direct.slat": 5e3}  # fmt: skip

    def lookup(name: str) -> Value | None:
        let = lesson.lets.get(name)
        return known.get(name) if let is None else let.value(lookup)

    ask = next(
        step for step in lesson.steps if step.name == "cold" and isinstance(step, QuestionPage)
    )
    assert "".join(c.letter for c in ask.choices if c.right.as_boolean(lookup)) == right


# -- finding one


@pytest.mark.parametrize("name", ["1", "01", "littles-law", "01-littles-law", "little"])
def test_a_number_a_name_or_a_beginning(name: str) -> None:
    assert find_lesson(name).name == "01-littles-law"


@pytest.mark.parametrize("name", ["", "10", "99999999999999999999", "\0", "zz", "./none.ini"])
def test_what_is_no_lesson(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_lesson(name)
    assert "iopstui lesson" in caught.value.hint


def test_a_file_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.ini").write_text("\ufeff" + GOOD)
    assert find_lesson("own.ini").name == find_lesson("./own.ini").name == "own"
    Path("bad").write_bytes(b"\xff\xfe[lesson]")
    with pytest.raises(UsageError, match="not UTF-8"):
        load_lesson(Path("bad"))
    with pytest.raises(UsageError, match="not a file"):
        load_lesson(tmp_path)
    Path("large").write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(UsageError, match="too large"):
        load_lesson(Path("large"))
    if os.geteuid():
        Path("secret").touch(0o000)
        with pytest.raises(UsageError, match="Can't read"):
            load_lesson(Path("secret"))


def test_an_installation_without_lessons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "iopstui").mkdir()
    monkeypatch.setattr("iopstui.__file__", str(tmp_path / "iopstui" / "__init__.py"))
    with pytest.raises(Missing):
        shipped_lessons()
    (tmp_path / "iopstui" / "lessons").mkdir()
    assert shipped_lessons() == ()
