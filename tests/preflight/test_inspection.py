"""What fio is asked about a job: what it opens, and whether it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from iopstui.errors import UsageError
from iopstui.fio.inspect import JobFacts, find_fio
from iopstui.preflight import inspection

JOB = "[global]\nsize=1m\n{}[a]\nrw=randwrite\nfilename=x:y\n{}"
CLOCK = "clocksource=clock_gettime\n"


def facts(text: str, private: Path) -> JobFacts:
    return inspection.inspected(find_fio(), private, text, "the job", private)


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
