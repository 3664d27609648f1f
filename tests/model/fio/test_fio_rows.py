from __future__ import annotations

import pytest

from iopstui.model.fio.jobfile import effective_sections
from iopstui.model.fio.rows import changing_option, flag, rows_of

GROUPED = "[global]\ngroup_reporting\n"
TWO = "[big]\nbs=64k\niodepth=8\nnumjobs=3\n[small]\nbs=4k\n"


def rows(text: str, count: int) -> list[tuple[list[str], int, int]]:
    """(names of the sections, members, I/Os under way at most) of each row."""
    found = rows_of(effective_sections(text), count)
    assert found is not None
    return [([s.name for s in row.sections], row.members, row.in_flight) for row in found]


def test_without_grouping_every_job_has_a_row() -> None:
    assert rows(TWO, 4) == [(["big"], 1, 8)] * 3 + [(["small"], 1, 1)]


@pytest.mark.parametrize("option", ["stonewall", "wait_for_previous", "new_group"])
def test_a_new_group_is_a_new_row(option: str) -> None:
    text = GROUPED + TWO + f"{option}\n[third]\n"
    assert rows(text, 2) == [(["big"], 3, 24), (["small", "third"], 2, 2)]


def test_a_stonewall_before_everything_divides_nothing() -> None:
    assert rows(GROUPED + "[a]\nstonewall\n[b]\n", 1) == [(["a", "b"], 2, 2)]


def test_jobs_without_statistics_have_no_row() -> None:
    assert rows(GROUPED + "[a]\nstats=0\n[b]\n", 1) == [(["b"], 1, 1)]


def test_rows_that_cannot_be_told_apart_are_all_sections() -> None:
    assert rows(TWO, 2) == [(["big", "small"], 4, 25)] * 2
    assert rows("[a]\ngroup_reporting\n[b]\n", 2) == [(["a", "b"], 2, 2)] * 2


def test_nothing_is_known_without_a_job_file() -> None:
    assert rows_of((), 3) is None


def test_a_boolean_without_a_value_is_on() -> None:
    assert flag({"direct": ""}, "direct")
    assert not flag({"direct": "0"}, "direct")
    assert not flag({}, "direct")


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ("rw=randread", ""),
        ("thinktime=50", ""),
        ("thinktime=400000", "thinktime"),
        ("thinktime=3s", "thinktime"),
        ("rw=randwrite\nverify=crc32c", "verify"),
        ("rw=randwrite\nverify=crc32c\ndo_verify=0", ""),
        ("flow=2", "flow"),
        ("latency_target=5ms", "latency_target"),
    ],
)
def test_options_that_change_a_load(options: str, option: str) -> None:
    section = effective_sections(f"[a]\n{options}\n")[0]
    assert changing_option([section.options]) == option


def test_members_of_a_row_that_begin_at_different_times_change_its_load() -> None:
    sections = effective_sections(GROUPED + "[a]\n[b]\nstartdelay=2\n")
    assert changing_option([section.options for section in sections]) == "startdelay"
