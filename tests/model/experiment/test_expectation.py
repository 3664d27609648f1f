"""Expectations: their grammar, what they are measured by, and what can't be measured."""

from __future__ import annotations

import io
import json
import subprocess
from dataclasses import replace
from functools import cache

import pytest
from fio_recordings import frames, statuses
from hypothesis import given
from hypothesis import strategies as st
from session_frames import session, whole_frames

from iopstui.errors import UsageError
from iopstui.events import ExpectationChecked, ExperimentFinished, ExperimentStarted, SteadyState
from iopstui.experiment.baseline import parse_expectations, plan_sections
from iopstui.fio.stream.status import parse_status
from iopstui.model.block.target import Target
from iopstui.model.experiment import expectation as module
from iopstui.model.experiment.expectation import (
    ExpectationChecker,
    Outcome,
    parse_expectation,
    parse_tolerance,
    why_not_measurable,
)
from iopstui.model.experiment.plan import Plan, parse_axis
from iopstui.model.figures.figure import ANY
from iopstui.model.fio.jobfile import effective_sections
from iopstui.model.histogram import merge, percentiles
from iopstui.model.metrics.fields import FIELDS, Field
from iopstui.model.metrics.figures import Meter, is_measurable
from iopstui.model.metrics.frame import PARTIAL
from iopstui.model.metrics.summary import fio_summary
from iopstui.model.samples import DirectionStatus
from iopstui.output.csv_out import value_at
from iopstui.output.jsonl import frame_object
from iopstui.output.verdict import VerdictSink
from iopstui.session.tick.outcomes import (
    FAIL,
    PASS,
    UNKNOWN,
    OutcomeTracker,
    final_rates,
    outcome_text,
    share_text,
)
from iopstui.text import wrapped

TREE = ("vda", "dm-0")


@pytest.mark.parametrize(
    ("value", "required"),
    [
        ("1B/s", 1), ("1kB/s", 10**3), ("1MB/s", 10**6), ("1GB/s", 10**9), ("1TB/s", 10**12),
        ("1KiB/s", 2**10), ("1MiB/s", 2**20), ("1GiB/s", 2**30), ("1TiB/s", 2**40),
    ],
)  # fmt: skip
def test_units_are_those_of_the_si_and_the_iec_exactly(value: str, required: int) -> None:
    assert parse_expectation(f"bw>={value}", TREE).required == required


@pytest.mark.parametrize(
    ("value", "required"),
    [("1k", 10**3), ("1M", 10**6), ("7", 7)],
)
def test_counts_are_in_powers_of_a_thousand_exactly(value: str, required: int) -> None:
    assert parse_expectation(f"iops>={value}", TREE).required == required


@pytest.mark.parametrize(
    ("value", "required"),
    [("1ns", 1), ("1us", 10**3), ("1usec", 10**3), ("1ms", 10**6), ("1msec", 10**6), ("1s", 10**9)],
)
def test_times_are_in_nanoseconds_exactly(value: str, required: int) -> None:
    assert parse_expectation(f"read.clat.p99<={value}", TREE).required == required


@pytest.mark.parametrize(
    ("text", "required"),
    [("rMB/s>=1048576B/s", 1), ("rMB/s>=1GiB/s", 1024), ("rareq-sz<=4096B", 4),
     ("rareq-sz<=1MiB", 1024), ("r_await<=2s", 2000)],
)  # fmt: skip
def test_a_device_s_figures_are_in_iostat_s_units(text: str, required: float) -> None:
    """iostat(1): sizes in KiB, throughput in MiB/s, times in milliseconds."""
    assert parse_expectation(text, TREE).required == pytest.approx(required, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("iops", "form"),
        ("iops=5", "form"),
        ("iops>5", "form"),
        (">=5", "form"),
        ("iops>=", "form"),
        ("iops>=many", "not understood"),
        ("iops>=-5", "not understood"),
        ("iops>=5ms", "not understood"),
        ("clat.p99<=2", "needs a unit"),
        ("bw>=5", "needs a unit"),
        ("bw>=5ms", "not understood"),
        ("iosp>=5", "cannot be measured: no figure of a whole run is called"),
        ("clat.p98<=1ms", "cannot be measured: no figure of a whole run is called"),
        ("flags>=1", "cannot be measured: no figure of a whole run is called"),
        ("progress>=1", "cannot be measured: no figure of a whole run is called"),
        ("fio.*.iops>=1", "cannot be measured: no figure of a whole run is called"),
        ("kernel.disks.sdz.util<=1%", "cannot be measured: no figure of a whole run is called"),
    ],
)
def test_what_is_no_expectation(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_expectation(text, TREE)


def test_without_a_device_the_kernel_s_figures_can_t_be_expected() -> None:
    with pytest.raises(UsageError, match="no block device"):
        parse_expectation("util<=90%", ())
    assert parse_expectation("iops>=1", ()).required == 1


def test_a_hint_names_what_was_meant() -> None:
    with pytest.raises(UsageError) as caught:
        parse_expectation("clat.p98<=1ms", TREE)
    assert "clat.p99" in caught.value.hint


@given(st.text(max_size=30))
def test_any_text_is_an_expectation_or_a_usage_error(text: str) -> None:
    try:
        parse_expectation(text, TREE)
    except UsageError as error:
        assert error.hint


@given(st.floats(1, 1e9), st.floats(0, 99), st.floats(1, 1e9))
def test_a_tolerance_only_widens(required: float, percent: float, value: float) -> None:
    for op in (">=", "<="):
        strict = parse_expectation(f"iops{op}{required:.3f}")
        wide = replace(strict, tolerance=percent / 100)
        assert wide.met_by(value) or not strict.met_by(value)


@pytest.mark.parametrize("text", ["ten", "-1%", "100%", "1000", "", "5 ms"])
def test_what_is_no_tolerance(text: str) -> None:
    with pytest.raises(UsageError, match="percentage"):
        parse_tolerance(text)


def test_tolerances() -> None:
    assert parse_tolerance("10%") == parse_tolerance("10") == pytest.approx(0.1)
    assert (parse_tolerance("0"), parse_tolerance(" 0.5 % ")) == (0.0, 0.005)
    assert parse_tolerance("99.9") == pytest.approx(0.999)
    for text in ("100", "-1", "x", ""):
        with pytest.raises(UsageError) as caught:
            parse_tolerance(text)
        assert caught.value.message == f"--tolerance {text!r} is not a percentage."
        assert caught.value.hint == "For example: 10%"
    assert parse_expectation("iops>=100", (), 0.1).limit == pytest.approx(90)
    assert parse_expectation("clat.p99<=2ms", (), 0.1).limit == pytest.approx(2.2e6)


@pytest.mark.parametrize("name", ["3.42-a-randread-grp", "3.1-a-randread-grp", "3.33-p-mixed"])
def test_a_run_s_percentiles_are_fio_s_own_final_ones(name: str) -> None:
    final = statuses(name)[-1]
    direction, part = next(iter(final.jobs[0].directions.items()))
    for percentile, expected in part.percentiles.items():
        path = ("fio", direction, "clat", percentile)
        if not is_measurable(path):
            continue
        meter = Meter(path)
        for frame in frames(name):
            meter.add(frame)
        assert meter.value == expected, percentile


def test_a_run_s_means_and_rates_are_fio_s_own() -> None:
    name = "3.42-a-randread-grp"
    part = statuses(name)[-1].jobs[0].directions["read"]
    for path, expected in (
        (("fio", "read", "clat", "mean"), part.clat.mean_ns if part.clat else None),
        (("fio", "read", "iops"), part.iops),
        (("fio", "total", "bw"), part.bw_bytes),
    ):
        meter = Meter(path)
        for frame in frames(name):
            meter.add(frame)
        assert meter.value == pytest.approx(expected, rel=2e-3), path


def test_a_ramp_does_not_count() -> None:
    final = statuses("3.42-e-ramp")[-1].jobs[0].directions["read"]
    meter = Meter(("fio", "read", "iops"))
    for frame in frames("3.42-e-ramp"):
        meter.add(frame)
    assert meter.value == pytest.approx(final.iops, rel=0.02)


def test_the_kernel_s_figures_add_up() -> None:
    found = {}
    for name in ("r/s", "r_await", "util", "aqu-sz", "rMB/s", "f_await", "rareq-sz"):
        meter = Meter(("kernel", "disks", "vda", name))
        rows = [frame for frame in whole_frames("3.42-a-randread-grp")]
        for frame in rows:
            meter.add(frame)
        found[name] = meter.value
    # session_frames.kernel: 1000 reads, 8000 sectors, 500 ms of reads a sample
    assert found["r_await"] == pytest.approx(0.5)
    assert found["rareq-sz"] == pytest.approx(4)
    assert found["f_await"] == pytest.approx(2.5)
    assert found["rMB/s"] == pytest.approx((found["r/s"] or 0) * 4096 / 2**20)


def test_every_measurable_field_says_of_a_frame_what_json_says() -> None:
    frame = whole_frames("3.42-a-randread-grp")[2]
    row = frame_object(frame)
    seen = 0
    for field in FIELDS:
        places = {"disks": "vda", "cpus": "1"}
        path = tuple(places[field.path[1]] if key == ANY and len(field.path) == 4 and
                     field.path[1] in places else key for key in field.path)  # fmt: skip
        path = ("wait", "layers", "vda") if field.path == ("wait", "layers", ANY) else path
        if ANY in path or not is_measurable(path) or path[1:2] in (("trim",), ("mixed",)):
            continue
        ours, theirs = Meter(path).add(frame), value_at(row, path)
        if path[:2] == ("fio", "write"):
            assert theirs is None and ours in (None, 0.0)
            continue
        assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-6), path
        seen += 1
    assert seen > 40


def sections(text: str):  # type: ignore[no-untyped-def]
    return effective_sections("[x]\n" + text)


@pytest.mark.parametrize(
    ("job", "text", "words"),
    [
        ("rw=randrw\ngtod_reduce=1", "clat.p99<=1ms", "gtod_reduce"),
        ("rw=randrw\ngtod_reduce", "read.lat.mean<=1ms", "gtod_reduce"),
        ("rw=randrw\ndisable_slat=1", "slat.mean<=1ms", "disable_slat"),
        ("rw=randread", "write.iops>=1", "no writes"),
        ("", "write.iops>=1", "no writes"),
        ("rw=randwrite:8", "read.bw>=1MB/s", "no reads"),
        ("rw=rw", "trim.iops>=1", "no trims"),
        ("rw=randread", "mixed.iops>=1", "unified_rw_reporting"),
        ("rw=randread\ngtod_reduce=1", "x:read.clat.p99<=1ms", "gtod_reduce"),
        ("rw=randread\nclat_percentiles=0", "x:read.clat.p99<=1ms", "clat_percentiles=0"),
    ],
)
def test_what_a_job_can_t_measure_is_known_before_it_runs(job: str, text: str, words: str) -> None:
    why = why_not_measurable(parse_expectation(text, TREE), sections(job))
    assert why is not None and words in why


@pytest.mark.parametrize(
    ("job", "text"),
    [
        ("rw=randrw\ngtod_reduce=1", "iops>=1"),
        ("rw=randrw\ngtod_reduce=1", "r_await<=1ms"),
        ("rw=randrw\ngtod_reduce=0", "clat.p99<=1ms"),
        ("rw=randrw", "write.iops>=1"),
        ("rw=readwrite", "write.iops>=1"),
        ("rw=randtrimwrite", "trim.iops>=1"),
        ("rw=somethingnew", "write.iops>=1"),
        ("rw=write\nverify=crc32c", "read.iops>=1"),
        ("rw=randread\ndisable_clat=1\nlat_percentiles=1", "lat.p99<=1ms"),
        ("rw=randread\nclat_percentiles=0", "clat.mean<=1ms"),
    ],
)
def test_what_a_job_can_measure(job: str, text: str) -> None:
    assert why_not_measurable(parse_expectation(text, TREE), sections(job)) is None


@cache
def _read_by(fio: str, *options: str) -> DirectionStatus:
    words = [fio, "--output-format=json+", "--name=x", "--ioengine=null", "--size=64k"]
    done = subprocess.run(
        [*words, *(f"--{one}" for one in options)], capture_output=True, check=True
    )
    status = parse_status(json.loads(done.stdout))
    assert status is not None
    return status.jobs[0].directions["read"]


@pytest.mark.parametrize("text", ["lat.p90<=1s", "lat.max<=1s", "clat.p90<=1s"])
@pytest.mark.parametrize("options", [
    "", "clat_percentiles=0", "lat_percentiles=1\nclat_percentiles=0",
    "disable_clat=1\nlat_percentiles=1",
])  # fmt: skip
def test_a_missing_histogram_is_refused_with_the_options_that_give_it(
    options: str, text: str, fio: str
) -> None:
    """Compared with documents of the real fio."""

    def has_bins(job: str) -> bool:
        read = _read_by(fio, *job.split())
        return bool(read.bins) and text.startswith(read.bins_of)

    target = Target("dir", "/x", None, ())
    try:
        parse_expectations([text], 0.0, target, [sections(options)])
    except UsageError as error:
        assert not has_bins(options)
        if "disable_clat" not in str(error):
            advised = str(error.hint).replace("Add ", "").replace("--set ", "").split()
            assert has_bins("\n".join([*options.split(), *advised]))
    else:
        assert has_bins(options)


def judged(name: str, *texts: str) -> tuple[OutcomeTracker, list[object], str]:
    seen: list[object] = []

    class Sink:
        def handle(self, event: object) -> None:
            seen.append(event)

        def close(self) -> None:
            pass

    words = io.StringIO()
    verdicts = OutcomeTracker([parse_expectation(text, TREE) for text in texts])
    sink = VerdictSink(Sink(), words)
    for event in session(name):
        for one in (event, *verdicts.feed(event)):
            sink.handle(one)
    return verdicts, seen, words.getvalue()


def test_verdicts_in_events_and_words() -> None:
    name = "3.42-a-randread-grp"
    iops = statuses(name)[-1].jobs[0].directions["read"].iops
    result, seen, words = judged(name, f"iops>={iops - 0.001:.3f}", "clat.p50<=1ns", "r/s>=1")
    verdicts = [event for event in seen if isinstance(event, ExpectationChecked)]
    assert [event.passed for event in verdicts] == [True, False, True]
    assert verdicts[0].measured == pytest.approx(iops), "fio's own figure, not nearly it"
    assert verdicts[1].share == 0 and 0 < (verdicts[0].share or 0) < 1
    assert result.passed is False
    assert words.count("PASS") == 2 and words.count("FAIL") == 1
    assert sum(isinstance(event, SteadyState) for event in seen) == 1
    assert max(map(len, words.splitlines())) <= 80


def test_a_figure_that_was_not_measured_is_no_verdict() -> None:
    verdicts, _, words = judged("3.42-b-randrw-gtod", "clat.p99<=1s")
    assert verdicts.passed is None
    assert "NOT MEASURED" in words


@pytest.mark.parametrize("name", ["3.42-a-randread-grp", "3.1-a-randread-grp", "3.42-l-size"])
def test_the_maximum_is_fio_own_not_a_bucket_s(name: str) -> None:
    (row,) = statuses(name)[-1].jobs
    (part,) = [d for d in row.directions.values() if d.issued]
    assert part.lat_max_ns is not None and part.lat_max_ns not in (part.bins or {})
    text = f"{part.bins_of}.max<={part.lat_max_ns}ns"
    _, seen, _ = judged(name, text, f"{part.bins_of}.max<={part.lat_max_ns - 1}ns")
    verdicts = [event for event in seen if isinstance(event, ExpectationChecked)]
    assert [event.measured for event in verdicts] == [part.lat_max_ns] * 2
    assert [event.passed for event in verdicts] == [True, False]


def test_the_final_rate_is_of_all_rows_however_they_report() -> None:
    """One row has its reads and writes as one (unified_rw_reporting), the other apart."""
    name = "3.33-q-unified-beside"
    rates = final_rates(fio_summary(statuses(name)[-1]))
    assert rates["fio", "total", "iops"] == pytest.approx(10_000, rel=0.01)
    both = final_rates(fio_summary(statuses("3.42-p-both")[-1]))
    assert both["fio", "total", "iops"] == pytest.approx(both["fio", "mixed", "iops"], rel=0.01)


def test_a_killed_run_is_judged_by_the_rows_that_hold() -> None:
    """fio's own mean in a last report that is not final divides late I/Os by an early run time; and
    a row in which a job ended is not the job's rate."""
    name = "3.42-c-numjobs4-nogroup"
    assert final_rates(fio_summary(statuses(name)[-1], final=False)) == {}
    checker = ExpectationChecker([parse_expectation("iops>=1"), parse_expectation("clat.p99<=1s")])
    whole, ended = frames(name)[1], replace(frames(name)[0], flags=frozenset({PARTIAL}))
    checker.add(ended)
    assert checker.outcomes()[0].measured is not None, "nothing else was measured"
    checker.add(whole)
    rate, latency = checker.outcomes()
    assert whole.fio is not None and ended.fio is not None
    assert rate.measured == whole.fio.total.iops
    both = merge((ended.fio.total.bins, whole.fio.total.bins))
    assert latency.measured == percentiles(both, (99.0,))[99.0], "no I/O is left out"


def test_a_stonewalled_job_has_no_final_rate() -> None:
    rates = final_rates(fio_summary(statuses("3.42-d-stonewall")[-1]))
    assert rates and all(path[:2] == ("fio", "jobs") for path in rates), "each job has its own"
    _, seen, _ = judged("3.42-d-stonewall", "iops>=1")
    assert next(e for e in seen if isinstance(e, ExpectationChecked)).measured is not None


def test_without_expectations_the_steady_state_alone_is_told() -> None:
    _, seen, words = judged("3.42-a-randread-grp")
    added = [event for event in seen if isinstance(event, SteadyState)]
    assert len(seen) == len(session("3.42-a-randread-grp")) + 1 and len(added) == 1
    told = added[0].steady is not None
    assert words.split() == (added[0].text.split() if told else []), "of a short run not a word"


def test_the_points_of_an_experiment_are_not_judged_twice() -> None:
    verdicts = OutcomeTracker([parse_expectation("iops>=1")])
    list(verdicts.feed(ExperimentStarted(0.0, Plan(("j",)))))
    run = session("3.42-a-randread-grp")
    assert [one for event in run for one in verdicts.feed(event)] == []
    list(verdicts.feed(ExperimentFinished(9.0, 1, 1)))
    assert len([one for event in run for one in verdicts.feed(event)]) == 2


def test_what_one_value_of_an_axis_can_t_measure_is_found_beforehand() -> None:
    axes = (parse_axis("iodepth=1,2"), parse_axis("gtod_reduce=0,1"))
    plan = Plan(("randread-4k",), {}, axes)
    target = Target("dir", "/x", None, ())
    assert parse_expectations(["iops>=1"], 0.0, target, plan_sections(plan))
    with pytest.raises(UsageError, match="gtod_reduce=1") as caught:
        parse_expectations(["clat.p99<=1ms"], 0.0, target, plan_sections(plan), {"gtod_reduce"})
    assert "--axis gtod_reduce" in caught.value.hint
    both = Plan(("randread-4k",), {}, (parse_axis("rw=randread,randwrite"),))
    with pytest.raises(UsageError, match="at some of the points: the job does no reads"):
        parse_expectations(["read.iops>=1"], 0.0, target, plan_sections(both), {"rw"})
    fine = Plan(("randread-4k",), {}, axes[:1])
    assert parse_expectations(["clat.p99<=1ms"], 0.0, target, plan_sections(fine))


def test_shares_are_rounded_honestly() -> None:
    assert [share_text(s) for s in (0, 0.001, 0.5, 0.999, 1)] == [
        "0 %", "1 %", "50 %", "99 %", "100 %"
    ]  # fmt: skip


@given(st.lists(st.text("ab 1%", min_size=1, max_size=12), max_size=40))
def test_wrapping_keeps_the_words(words: list[str]) -> None:
    text = " ".join(" ".join(words).split())
    assert " ".join(wrapped(text, 2, 4).split()) == text


@given(st.sampled_from(["iops>=5000", "clat.p99<=2ms", "read.bw>=100MB/s", "r_await<=1ms"]),
       st.none() | st.floats(0, 1e10), st.integers(0, 99))  # fmt: skip
def test_words_of_an_event_are_those_of_its_outcome(
    text: str, measured: float | None, percent: int
) -> None:
    outcome = Outcome(parse_expectation(text, TREE, percent / 100), measured, None)
    words = outcome_text(outcome)
    assert words.startswith(UNKNOWN if measured is None else PASS if outcome.passed else FAIL)
    assert (f"with {percent} % tolerance" in words) == (percent > 0)
    assert text.partition("=")[0][:-1] in words


def test_judge_counts_seconds_not_frames() -> None:
    judge = ExpectationChecker([parse_expectation("iops>=1")])
    for frame in frames("3.33-x-stall4s"):
        judge.add(frame)
    assert judge.outcomes()[0].share == pytest.approx(1)


def test_a_unit_that_only_a_source_of_samples_has(monkeypatch: pytest.MonkeyPatch) -> None:
    field = Field(("kernel", "vm", "pgpgin"), "pgpgin", "pages/s", "/proc/vmstat", "paged in")
    monkeypatch.setattr(module, "_matching_fields", lambda name, tree: [field])
    assert parse_expectation("vm.pgpgin>=5").required == 5.0
    assert parse_expectation("vm.pgpgin>=5pages/s").required == 5.0
    with pytest.raises(UsageError, match="not understood") as wrong:
        parse_expectation("vm.pgpgin>=5ms")
    assert wrong.value.hint == "pgpgin takes pages/s."
