"""What fio tells about a job: which files it opens, and whether it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from iopstui.errors import UsageError
from iopstui.fio import inspect as fio_inspect
from iopstui.fio.inspect import END, JobFacts, find_fio, inspect
from iopstui.preflight import inspection

JOB = "[global]\nsize=1m\n{}[a]\nrw=randwrite\nfilename=x:y\n{}"
CLOCK = "clocksource=clock_gettime\n"


def facts(text: str, private: Path) -> JobFacts:
    return inspection.inspect_text(find_fio(), private, text, "the job", private)


@pytest.mark.parametrize("text", [JOB.format(CLOCK, ""), JOB.format("", CLOCK),
                                  JOB.format("clocksource=cpu\n", CLOCK)])  # fmt: skip
def test_the_clock_plays_no_part_and_is_not_measured(text: str, tmp_path: Path) -> None:
    without = JOB.format("", "")
    expected = facts(without, tmp_path)
    asked = (tmp_path / inspection.JOB).read_text()
    assert expected.writes and expected.paths == ("x", "y")
    assert facts(text, tmp_path) == expected
    assert (tmp_path / inspection.JOB).read_text() == asked


@pytest.mark.parametrize("places", [("{}", ""), ("", "{}"), (CLOCK, "{}")])
def test_a_clock_that_fio_does_not_know_is_refused(places: tuple[str, str], tmp_path: Path) -> None:
    text = JOB.format(*(place.format("clocksource=sundial\n") for place in places))
    with pytest.raises(UsageError, match=r"sundial|clocksource"):
        facts(text, tmp_path)


@pytest.mark.parametrize("kind", sorted(inspection.WRITING_MODES))
def test_what_says_that_it_writes_fio_takes_for_no_reader(kind: str, tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text(f"[a]\nsize=1m\nfilename=x\nrw={kind}\n{END}")
    asked = inspect(find_fio(), job, "it", tmp_path)
    assert asked.writes
    assert inspect(find_fio(), job, "it", tmp_path, True) == asked


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[a]\nrw=randwrite\n", True),
        ("[a]\nreadwrite=randrw:8\n", True),
        ("[a]\nrw=read\n[b]\nrw=trim\n", True),
        ("[global]\nrw=write\n[a]\n", True),
        ("[global]\nrw=write\n[a]\nreadwrite=read\n", False),
        ("[global]\nrw=write\n", False),
        ("[a]\nrw=read\nrw=randread\n", False),
        ("[a]\nrw=write\nrw=read\n", False),
        ("[a]\nrw=write\nreadwrite=read\n", False),
        ("[a]\nname=write\n", False),
        ("[a]\nrw=${KIND}\n", False),
        ("[a]\nrw=writes\n", False),
    ],
)
def test_only_what_is_plain_to_see_is_not_asked(text: str, says: bool) -> None:
    assert inspection.declares_writes(text) is says


def test_fio_is_asked_once_about_a_job_that_says_that_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def ask(command: list[str], *more: object) -> object:
        asked.append(command)
        return real(command, *more)  # type: ignore[arg-type]

    fio, real = find_fio(), fio_inspect.run_fio
    monkeypatch.setattr(fio_inspect, "run_fio", ask)
    text = "[a]\nsize=1m\nfilename=x\nrw={}\n"
    assert inspection.inspect_text(fio, tmp_path, text.format("write"), "it", tmp_path).writes
    assert len(asked) == 1 and "--readonly" not in asked[0]
    assert not inspection.inspect_text(fio, tmp_path, text.format("read"), "it", tmp_path).writes
    assert len(asked) == 2 and "--readonly" in asked[1]
