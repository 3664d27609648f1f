from __future__ import annotations

import pytest

from iopstui.errors import UsageError
from iopstui.fio.inspect import (
    check_option,
    complete_option,
    find_fio,
    parse_options,
    read_fio_options,
)

NAMES = dict.fromkeys(("iodepth", "iodepth_batch", "iodepth_low", "numjobs"), "")


@pytest.mark.parametrize(
    ("option", "engine", "said"),
    [
        ("iodepht=32", "libaio", "no option iodepht. Did you mean iodepth"),
        ("filename=/dev/vda", "", "conflicts with the target"),
        ("rw=randred", "", "does not accept rw=randred. Did you mean randread"),
        ("rw=7", "", "Allowed: read, write"),
        ("rwmixread=170", "", "out of range: 170"),
        ("exec_prerun=ls", "", "runs a command"),
        ("ioengine=libiao", "", "did you mean libaio?"),
        # fio has these, but not in a job file, or not for this engine
        ("output=/tmp/x", "", "no option output"),
        ("sqthread_poll=1", "psync", "no option sqthread_poll"),
    ],
)
def test_what_fio_would_refuse_is_said_at_once(option: str, engine: str, said: str) -> None:
    name, _, value = option.partition("=")
    with pytest.raises(UsageError) as caught:
        check_option(find_fio(), name, value, engine)
    assert said in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize("option", ["iodepth=32", "sqthread_poll=1", "rwmixread="])
def test_what_fio_takes_is_taken(option: str) -> None:
    name, _, value = option.partition("=")
    check_option(find_fio(), name, value, "io_uring")


def test_the_list_is_fios_own_with_its_words() -> None:
    assert read_fio_options(find_fio())["iodepth"].startswith("Number of IO buffers")
    assert parse_options("fio-3.33\n  bsrange   : Set: a range\n\n") == {"bsrange": "Set: a range"}


@pytest.mark.parametrize(
    ("typed", "becomes", "fitting"),
    [
        ("num", "numjobs=", 1),
        ("io", "iodepth", 3),
        ("iodepth_", "iodepth_", 2),
        ("xyz", "xyz", 0),
        ("iodepth=3", "iodepth=3", 0),
    ],
)
def test_tab_completes_as_far_as_it_is_certain(typed: str, becomes: str, fitting: int) -> None:
    text, names = complete_option(typed, NAMES)
    assert (text, len(names)) == (becomes, fitting)
