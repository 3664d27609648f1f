"""Times as people write them: "02:14", "yesterday 02:14", "-2h", "2026-11-27 02:14", "...Z".

Times without a zone are in the system's local time zone (TZ)."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone

from iopstui.errors import UsageError
from iopstui.model.watch.trigger import parse_duration
from iopstui.text import printable

EXAMPLES = "For example: 02:14, 'yesterday 02:14', '2026-11-27 02:14', 2026-11-27T02:14Z, -2h"
_TIME = re.compile(
    r"(?:(?P<day>today|yesterday|\d{4}-\d\d-\d\d)(?:[ T]|$))?"
    r"(?P<time>\d{1,2}:\d\d(?::\d\d)?)?\s*(?P<zone>Z|[+-]\d\d:?\d\d)?",
    re.IGNORECASE,
)
UTC = timezone.utc
_DAY = timedelta(days=1)
_LATEST_S = 4102444800.0
"""The year 2100, the latest time that is accepted; calendars end in 9999."""


def parse_time(text: str, now_s: float, option: str = "--at") -> float:
    """The time that ``text`` means, in seconds since the epoch. Without a day, it is the latest
    such time in the past. Raises UsageError for other texts, and for a local time that occurs twice
    or never."""
    text = text.strip()
    if text.lower() == "now":
        return now_s
    if text.startswith("-") and (length_s := parse_duration(text[1:])) is not None:
        return now_s - length_s
    match = _TIME.fullmatch(text)
    if match is None or not (match["day"] or match["time"]):
        raise UsageError(f"{option}: {printable(text)!r} is not a time.", EXAMPLES)
    try:
        moment_s = _moment_s(match, now_s, option)
    except (ValueError, OverflowError):
        moment_s = -1.0
    if not 0 <= moment_s < _LATEST_S:
        raise UsageError(f"{option}: {printable(text)!r} is not a time.", EXAMPLES)
    return moment_s


def _moment_s(match: re.Match[str], now_s: float, option: str) -> float:
    zone = _zone(match["zone"])
    clock = _clock(match["time"])
    now = datetime.fromtimestamp(now_s, zone)
    day = _day(match["day"], now.date())
    moment = datetime.combine(day, clock.time())
    if match["day"] is None and moment > now.replace(tzinfo=None):
        moment -= _DAY
    if zone is not None:
        return moment.replace(tzinfo=zone).timestamp()
    return _local(moment, option)


def _zone(text: str | None) -> timezone | None:
    if text is None:
        return None
    if text in "Zz":
        return UTC
    minutes = 60 * int(text[1:3]) + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))


def _clock(text: str | None) -> datetime:
    return datetime.strptime(text or "0:00", "%H:%M:%S" if (text or "").count(":") > 1 else "%H:%M")


def _day(text: str | None, today: date) -> date:
    if text is None or text.lower() == "today":
        return today
    return today - _DAY if text.lower() == "yesterday" else date.fromisoformat(text)


def _local(moment: datetime, option: str) -> float:
    first, second = (moment.replace(fold=fold).timestamp() for fold in (0, 1))
    if first == second:
        return first
    text = f"{moment:%Y-%m-%d %H:%M}"
    if datetime.fromtimestamp(first) != moment:
        raise UsageError(f"{option}: {text} does not exist here: the clock was set forward.",
                         f"Name the time in UTC: {option} {utc_text(first)}")  # fmt: skip
    raise UsageError(
        f"{option}: {text} was twice here: the clock was set back.",
        f"Name the first, {option} {utc_text(first)}, or the second, {option} {utc_text(second)}",
    )


def utc_text(moment_s: float) -> str:
    """A time such as "2026-11-27T02:14Z", with seconds only if they are not 0."""
    moment = datetime.fromtimestamp(round(moment_s), UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ" if moment.second else "%Y-%m-%dT%H:%MZ")


def local_text(moment_s: float) -> str:
    """A local time, such as "2026-11-27 02:14:05"."""
    return datetime.fromtimestamp(moment_s).strftime("%Y-%m-%d %H:%M:%S")
