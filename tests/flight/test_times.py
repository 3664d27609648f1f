"""Times as people write them, also on days on which the clock changes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timezone

import pytest

from iopstui.errors import UsageError
from iopstui.features.flight.model.times import parse_time, utc_text

NOW = datetime(2026, 11, 27, 8, 0, tzinfo=timezone.utc).timestamp()


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Local time is that of Berlin: UTC+1, in summer UTC+2."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("02:14", "2026-11-27T01:14Z"),
        ("2:14:05", "2026-11-27T01:14:05Z"),
        ("09:30", "2026-11-26T08:30Z"),  # it is 9:00 here, so 09:30 was yesterday
        ("today 09:30", "2026-11-27T08:30Z"),
        ("yesterday 02:14", "2026-11-26T01:14Z"),
        ("2026-07-01 02:14", "2026-07-01T00:14Z"),
        ("2026-07-01T02:14Z", "2026-07-01T02:14Z"),
        ("2026-07-01 02:14+05:30", "2026-06-30T20:44Z"),
        ("02:14Z", "2026-11-27T02:14Z"),
        ("2026-11-20", "2026-11-19T23:00Z"),
        ("yesterday", "2026-11-25T23:00Z"),
        ("-2h", "2026-11-27T06:00Z"),
        ("-90", "2026-11-27T07:58:30Z"),
        ("now", "2026-11-27T08:00Z"),
    ],
)
def test_times(text: str, expected: str) -> None:
    assert utc_text(parse_time(text, NOW)) == expected


def test_a_time_that_was_twice_names_both() -> None:
    with pytest.raises(UsageError) as error:
        parse_time("2026-10-25 02:14", NOW)
    assert "was twice" in error.value.message
    assert "2026-10-25T00:14Z" in error.value.hint and "2026-10-25T01:14Z" in error.value.hint
    for moment in ("2026-10-25T00:14Z", "2026-10-25T01:14Z"):
        local = time.localtime(parse_time(moment, NOW))
        assert (local.tm_hour, local.tm_min) == (2, 14)


def test_a_time_that_never_was_is_refused() -> None:
    with pytest.raises(UsageError, match="does not exist here"):
        parse_time("2026-03-29 02:14", NOW)


@pytest.mark.parametrize(
    "text", ["", "Z", "25:00", "02:60", "noon", "2026-13-01", "-2y", "02:14 x"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        parse_time(text, NOW)
