"""Tunables of many hosts' disks: which hosts get an order, its result, and what later sessions set
again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.errors import UsageError
from iopstui.features.fleet.hosts import host_tunables as s
from iopstui.features.fleet.hosts.host_tunables import (
    HostTunableResult,
    HostTunables,
    parse_host_tunables,
    plan_tunable_change,
)
from iopstui.safety.tunables import TunableState

ALL = ("none", "mq-deadline", "bfq")
ODD = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.lists(st.text(max_size=3), max_size=3) | st.dictionaries(st.text(max_size=3), st.none())
)  # fmt: skip


def state(now: str = "none", **more: Any) -> TunableState:
    return TunableState("scheduler", "the I/O scheduler", now, ALL, ", ".join(ALL), **more)


def heard(settings: HostTunables, host: str, disk: str, *states: TunableState) -> None:
    settings.take_answer(host, {"event": "tunables", "states": s.tunables_object(states, disk)})


def three() -> HostTunables:
    """a and b can set the scheduler, c has it already, d lacks bfq, e may not set it, f has no
    scheduler."""
    settings = HostTunables()
    heard(settings, "a", "sda", state())
    heard(settings, "b", "md0", state(by_disk=(("sdb", "none"), ("sdc", "mq-deadline"))))
    heard(settings, "c", "sda", state("bfq"))
    heard(settings, "d", "vda", TunableState("scheduler", "", "none", ("none",), "none"))
    heard(settings, "e", "sda", state(refused="Changing scheduler of sda needs root."))
    heard(settings, "f", "sda", TunableState("nomerges", "", "0", ("0", "1", "2"), "0, 1, 2"))
    return settings


def test_those_who_can_are_asked_and_the_others_are_named_with_the_reason() -> None:
    settings = three()
    turn = plan_tunable_change("abcdefg", settings.by_host, "scheduler", "bfq")
    assert [(host, one.by_disk) for host, one in turn.hosts] == [
        ("a", (("sda", "none"),)), ("b", (("sdb", "none"), ("sdc", "mq-deadline")))
    ]  # fmt: skip
    assert turn.unchanged == ("c",)
    assert turn.excluded == (
        ("d", "vda takes none"), ("e", "Changing scheduler of sda needs root."),
        ("f", "its disk has no scheduler"), ("g", s.NOT_CONNECTED),
    )  # fmt: skip
    with pytest.raises(UsageError, match="takes 0, 1, 2"):
        plan_tunable_change("a", settings.by_host, "rq_affinity", "7")


def test_all_hosts_are_one_list() -> None:
    found = {one.name: one for one in s.merged_tunables(three().by_host)}
    scheduler = found["scheduler"]
    assert scheduler.now == "none/mq-deadline/bfq" and scheduler.values == ALL
    assert scheduler.by_disk[:3] == (("a sda", "none"), ("b sdb", "none"), ("b sdc", "mq-deadline"))
    # a host that refuses does not keep the others from it
    assert not scheduler.refused and set(found) == {"scheduler", "nomerges"}
    alone = HostTunables()
    heard(alone, "e", "sda", state(refused="It needs root."))
    assert s.merged_tunables(alone.by_host)[0].refused == "e: It needs root."


def answer(number: int, *each: list[str], error: str = "") -> dict[str, Any]:
    return {"event": "turned", "id": number, "each": [*each], "error": error, "hint": ""}


def test_a_change_that_fails_on_one_host_names_it_and_the_others_are_set_again_later() -> None:
    settings = three()
    turn = plan_tunable_change("ab", settings.by_host, "scheduler", "bfq")
    order = settings.make_order(turn)
    assert order == {"op": "turn", "id": 1, "name": "scheduler", "value": "bfq"}
    settings.take_answer("b", answer(1, ["sdb", "none", "none"], error="The kernel refuses it."))
    settings.take_answer("x", answer(1, ["sda", "none", "bfq"]))
    assert settings.result() is None and settings.is_pending
    settings.take_answer("a", answer(1, ["sda", "none", "bfq"]))
    found = HostTunableResult("scheduler", "bfq", (("a", "sda", "none", "bfq"),),
                   (("b", "The kernel refuses it."),))  # fmt: skip
    assert settings.result() == found and found.hosts == ("a",)
    assert settings.result() is None and not settings.is_pending
    assert (
        settings.initial_settings("a") == [["scheduler", "bfq"]]
        and settings.initial_settings("b") == []
    )
    # undone, so nothing is set again later
    settings.make_order(plan_tunable_change("a", settings.by_host, "scheduler", "mq-deadline"))
    settings.take_answer("a", answer(2, ["sda", "bfq", "none"]))
    assert settings.initial_settings("a") == []


def test_who_does_not_answer_is_said_to_when_its_session_ends_or_it_is_gone() -> None:
    settings = three()
    settings.make_order(plan_tunable_change("ab", settings.by_host, "scheduler", "bfq"))
    assert settings.result(["c"]) is None
    settings.take_answer("a", answer(1, ["sda", "none", "bfq"]))
    found = settings.result(["b"])
    assert found is not None and found.failed == (("b", s.NO_ANSWER),)
    settings.make_order(plan_tunable_change("b", settings.by_host, "scheduler", "bfq"))
    settings.start_session()
    found = settings.result()
    assert found is not None and found.failed == (("b", s.NO_ANSWER),) and settings.by_host == {}


@given(ODD, ODD, ODD)
def test_whatever_a_host_says_is_understood_or_left_out(one: Any, two: Any, three: Any) -> None:
    settings = HostTunables()
    row = {"name": one, "values": two, "each": three, "meaning": two, "takes": three}
    for states in (one, [two], [row], [{**row, "name": "x", "each": [["sda", one]]}]):
        settings.take_answer("a", {"event": "tunables", "states": states})
        for found in settings.by_host["a"].values():
            assert found.by_disk and all(
                isinstance(word, str) for pair in found.by_disk for word in pair
            )
    known = {"nomerges": TunableState("nomerges", "", "0", (), "", (("sda", "0"),))}
    settings.make_order(plan_tunable_change("a", {"a": known}, "nomerges", "2"))
    settings.take_answer("a", {"event": "turned", "id": one, "each": two, "error": three})
    settings.take_answer("a", {"event": "turned", "id": 1, "each": two, "error": three})
    assert settings.result() is not None


def test_interrupts_are_each_machine_s_own() -> None:
    irq = TunableState("irq/30", "", "0-3", (), "a CPU list")
    sent = {"states": s.tunables_object([irq, state()], "sda")}
    assert [*parse_host_tunables(sent)] == ["scheduler"]
