"""Values with which fio would never end are refused before anything starts."""

from __future__ import annotations

import pytest

from iopstui.errors import UsageError
from iopstui.fio.dangerous_values import refuse_dangerous_values
from iopstui.linux.machine.load import parse_memory
from iopstui.model.fio.jobfile import effective_sections

GIB = 1 << 30


def refused(*options: str, memory: int | None = 8 * GIB) -> str:
    with pytest.raises(UsageError) as error:
        refuse_dangerous_values(effective_sections("\n".join(["[a]", *options])), memory)
    return error.value.message


@pytest.mark.parametrize(
    "option", ["runtime=-5", "timeout=-1s", "ramp_time=-1", "startdelay=-5", "thinktime=-1"]
)
def test_a_time_below_zero(option: str) -> None:
    assert refused(option) == (f"{option} is negative, which fio takes for an endless time.")


@pytest.mark.parametrize("value", ["1e1", "1E400", "0x10", "2.5e3", "1e-3"])
def test_a_time_in_a_notation_that_fio_misreads(value: str) -> None:
    assert f"ramp_time={value}" in refused(f"ramp_time={value}")
    refuse_dangerous_values(
        effective_sections("[a]\nruntime=2.5\nramp_time=1m\nthinktime=0x10\n"), 8 * GIB
    )


@pytest.mark.parametrize("memory", [None, 8 * GIB])
def test_memory_below_zero(memory: int | None) -> None:
    assert "lockmem=-1 is negative" in refused("lockmem=-1", memory=memory)


@pytest.mark.parametrize("option", ["rate=-5", "rate=1m,-1m", "rate_iops=-1", "rate_min=-1k",
                                    "rate_iops_min=-1"])  # fmt: skip
def test_a_rate_below_zero(option: str) -> None:
    assert f"{option} is negative" in refused(option)
    refuse_dangerous_values(effective_sections("[a]\nrate=,1m\nrate_iops=100,200\n"), 8 * GIB)


@pytest.mark.parametrize("option", ["bs=-4k", "bs=4k,-8k", "size=-1", "io_size=-5", "offset=-1",
                                    "offset_increment=-1m", "bsrange=8k--4k",
                                    "zonesize=-4k"])  # fmt: skip
def test_a_size_below_zero(option: str) -> None:
    assert f"{option} is negative" in refused(option)
    refuse_dangerous_values(
        effective_sections("[a]\nbs=4k,8k\nbsrange=4k-8k,1k-2k\nsize=50%\noffset=1m\n"), 8 * GIB
    )


@pytest.mark.parametrize("pause", ["1h", "3000001", "4s"])
def test_a_pause_that_outlasts_the_runtime(pause: str) -> None:
    assert refused("runtime=3", f"thinktime={pause}") == (
        f"thinktime={pause} is longer than runtime=3: fio ends only after that pause."
    )


def test_more_memory_than_there_is() -> None:
    assert refused("iodepth=1000000000") == (
        "iodepth=1000000000 would need 4.13 TiB of memory, but this machine has 8 GiB."
    )
    assert refused("iodepth=65536", "bs=64k", "numjobs=4").startswith("iodepth=65536 would need")
    assert refused("lockmem=1t") == (
        "lockmem=1t would need 1 TiB of memory, but this machine has 8 GiB."
    )


@pytest.mark.parametrize("options", [
    ("runtime=99999999999",), ("iodepth=65536",), ("lockmem=1g", "numjobs=100"), ("runtime=10",),
    ("runtime=3", "thinktime=3000000"), ("thinktime=1h",), ("runtime=0", "thinktime=1h"),
    ("iodepth=none",), ("runtime=",), ("iodepth=1", "bs=4g", "numjobs=4"),
])  # fmt: skip
def test_what_works_or_is_fio_s_to_refuse(options: tuple[str, ...]) -> None:
    refuse_dangerous_values(effective_sections("\n".join(["[a]", *options])), 8 * GIB)


def test_where_the_memory_is_not_known() -> None:
    refuse_dangerous_values(effective_sections("[a]\nlockmem=1t\niodepth=1000000000\n"), None)
    assert parse_memory(b"") is None
    assert parse_memory(b"MemTotal:       16384 kB\nMemFree:  1 kB\n") == 16 << 20
