"""Who uses the target's disks. This replaces fio's figures until a job runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iopstui import format as f
from iopstui.model.answer.use import DiskUse, DiskUser
from iopstui.model.answer.who import (
    LEAST_REST,
    Share,
    combined_shares,
    perhaps_text,
    request_latency,
    who_text,
)
from iopstui.model.block.target import Target
from iopstui.model.figures.disk import DiskRates
from iopstui.model.metrics.probe import PROCESSES, ProbeInterval
from iopstui.text import printable
from iopstui.ui.draw.rows import Line, Piece, Row, cells, fit, message, pad, rule, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, Charset

Seconds = Sequence[Mapping[str, DiskRates]]
Latency = tuple[int | None, int | None]

BAR_CELLS = 8
SHARE, PID, USER, RATE = 6, 9, 10, 9
LATENCY, LATENCY_FROM = 9, 100
GROUP, GROUP_FROM = 30, 130
"""The width of the column with the container or service, and the terminal width from which it is
shown."""
FOOT = 3
"""Columns of the lower border on which the last row has no room."""
FEW = f"{f.MISSING}: too few requests of its own"
PASSED_ON = "{0}: sent by the kernel's threads of {1}"
"""Why the user of a loop device has no requests of its own on the disk below."""
OLD_S = 2
"""A reading that ended at least so many seconds ago says so."""


@dataclass(frozen=True, slots=True)
class UsersOfDisk:
    """Who uses the target's disks, from the last reading."""

    target: Target
    use: DiskUse
    shares: Sequence[Share]

    @property
    def title(self) -> str:
        """ "Who uses vda, in 5 s"."""
        return f"{title(self.target)}, in {time_text(self.use)}"


def title(target: Target) -> str:
    return f"Who uses {printable(target.name)}"


def value(use: DiskUse, shares: Sequence[Share], now_s: float | None = None) -> list[Piece]:
    """The text for the border of its box: for which share of the bytes the user is known, and the
    time of the reading, because the panels beside it show the last second. ``now_s`` is the
    session's clock."""
    known, when = sum(share.share for share in shares), time_text(use)
    age_s = 0 if now_s is None else round(now_s - use.t)
    if age_s >= OLD_S:
        when += f", {age_s} s ago"
    if not known:
        return [(f"in {when}", DIM)]
    return [(f"{100 * min(1.0, known):.0f} %", BOLD), (f" of the bytes in {when}", DIM)]


def rows(
    use: DiskUse, target: Target, width: int, height: int, charset: Charset, job: str,
    probe: ProbeInterval | None = None, shares: Sequence[Share] | None = None, is_live: bool = True,
    now_s: float | None = None,
) -> list[Row]:  # fmt: skip
    """The panel; its last row says what cannot be seen, and what u and r do if it ``is_live``.
    ``probe`` has the latencies of each process, ``shares`` those of ``shares_of``."""
    shares = shares_of(use, target) if shares is None else shares
    users = {user.pid: user for user in use.users}
    disks = (*target.opened, *target.tree)
    rest = 1 - sum(share.share for share in shares)
    names_rest = bool(shares) and rest >= LEAST_REST
    shown = shares[: max(0, height - 3 - names_rest)]
    latencies: list[Latency] = [(None, None)] * len(shown)
    if probe is not None and PROCESSES in probe.parts and width >= LATENCY_FROM:
        latencies = [request_latency(share.pid or 0, disks, [probe]) for share in shown]
    timed = any(latency != (None, None) for latency in latencies)
    body = [_header(width, charset, timed)] if shares else []
    few = _dash_text(shown, latencies) if timed else ""
    for share, latency in zip(shown, latencies, strict=True):
        user = users.get(share.pid or 0)
        body.append(_row(share, user, width, charset, latency if timed else None))
    if names_rest:
        body.append(message(width, charset, _fitting(rest_texts(use, rest), " ", width - 1)))
    if not shares:
        body += wrap(width, charset, nobody(use, target))
    head = rule(width, charset, (title(target), BOLD), right=value(use, shares, now_s))
    is_unknown = rest >= LEAST_REST and bool(shares or _moved(use, target))
    parts = _foot(use, job, is_live, is_unknown, few)
    foot = message(width, charset, _fitting(parts, " · ", width - FOOT))
    return [*pad([head, *body], height - 1, width), foot]


def rest_texts(use: DiskUse, rest: float) -> list[str]:
    """The part of the bytes whose users are not known, and who they may be."""
    hidden = f"{use.hidden_text} closed even to root" if use.as_root else "other users"
    others = f"{hidden}, the kernel" if use.hidden else "the kernel"
    others = f"processes outside this container, {others}" if use.outer_processes else others
    return [f"{100 * rest:3.0f} %  by nobody that can be named", f"({others}, ended processes)"]


def _dash_text(shown: Sequence[Share], latencies: Sequence[Latency]) -> str:
    """What a dash stands for; "" if there is none."""
    without = [one for one, both in zip(shown, latencies, strict=True) if None in both]
    ways = [one.through for one in without if one.through]
    return PASSED_ON.format(f.MISSING, ways[0]) if ways else FEW * bool(without)


def sentence(use: DiskUse | None, target: Target, seconds: Seconds = ()) -> str:
    """ "vda: fio --name=hog (965) does 64 % of its bytes (in 2 s)"; "" if no known user does at
    least half of them."""
    if use is None:
        return ""
    text = who_text(shares_of(use, target, seconds), None, target.name)
    return f"{target.name}: {text} (in {time_text(use)})" if text else ""


def users_of(use: DiskUse, target: Target, seconds: Seconds) -> UsersOfDisk:
    return UsersOfDisk(target, use, shares_of(use, target, seconds))


def shares_of(use: DiskUse, target: Target, seconds: Seconds = ()) -> tuple[Share, ...]:
    """The users of the target's disks."""
    stacks = target.stacks
    disks = {name: (name, *stacks.get(name, ())) for name in target.opened}
    return combined_shares(disks, use, seconds)


def nobody(use: DiskUse, target: Target) -> str:
    """Says that no user is known."""
    if not _moved(use, target):
        return f"Nobody read or wrote in {time_text(use)} (last reading)."
    found = [perhaps_text(disk, (disk, *target.stacks.get(disk, ())), use)
             for disk in target.opened]  # fmt: skip
    perhaps = next(filter(None, found), "")
    return (
        f"No process that can be seen has files open there and did I/O in {time_text(use)} "
        f"(last reading){perhaps and f': {perhaps}'}."
    )


def _moved(use: DiskUse, target: Target) -> float:
    """Bytes per second of the target's own disks; of those below if they are not counted."""
    own = [name for name in target.opened if name in use.disks]
    return sum(sum(use.disks[name][:2]) for name in own or target.tree if name in use.disks)


def time_text(use: DiskUse) -> str:
    """The time that the reading covers. It is more than a second, because reading every second
    would cost too much."""
    return f"{max(1, round(use.seconds))} s"


def _fitting(parts: Sequence[str], between: str, room: int) -> str:
    """As many of the parts as have room, the first one always."""
    while len(parts) > 1 and cells(between.join(parts)) > room:
        parts = parts[:-1]
    return between.join(parts)


def _foot(use: DiskUse, job: str, is_live: bool, is_unknown: bool, few: str) -> list[str]:
    """``is_unknown``: part of the bytes are by nobody who is known. ``few`` says what a dash stands
    for."""
    hidden = f"{use.hidden_text} of others hidden (root sees them)"
    keys = ["u all processes"] * is_live + [f"r runs {printable(job)}"] * bool(job)
    hides = bool(use.hidden) and is_unknown and not use.as_root
    return [hidden] * hides + [few] * bool(few) + keys


def _header(width: int, charset: Charset, timed: bool) -> Row:
    line = Line(width, charset).add(f"{' at least':{SHARE + BAR_CELLS + 1}}", DIM)
    line.add(f"{'pid':>{PID}} ", DIM).add(f"{'user':{USER}}", DIM).add("command", DIM)
    return _right(line, "MiB/s", "container or service", width, ("p50", "p99") if timed else ())


def _row(
    share: Share, user: DiskUser | None, width: int, charset: Charset,
    latency: Latency | None,
) -> Row:  # fmt: skip
    full = round(min(1.0, share.share) * BAR_CELLS)
    line = Line(width, charset).add(f"{100 * share.share:{SHARE - 2}.0f} % ", BOLD)
    line.add(charset.full * full, DEVICE).add(charset.empty * (BAR_CELLS - full), DIM)
    line.add(f" {share.pid or '':>{PID}} ")
    line.add(fit(printable(user.user), USER - 1) + " " if user else " " * USER)
    times = [f.latency(ns) for ns in latency] if latency is not None else []
    space = line.free - RATE - len(times) * LATENCY - (GROUP if width >= GROUP_FROM else 0) - 1
    name = printable(user.command or user.comm) if user else printable(share.name)
    suffix = " + children" if user is not None and user.children else ""
    suffix += f" through {share.through}" if share.through else ""
    line.add(f.cut(name, max(1, space - len(suffix))) + suffix)
    group = printable(user.group) if user else ""
    return _right(line, f.mib(share.bytes_s), group, width, times)


def _right(line: Line, rate: str, group: str, width: int, times: Sequence[str]) -> Row:
    figures = RATE + len(times) * LATENCY
    if width >= GROUP_FROM:
        line.fill_to(width - figures - GROUP)
        line.add(f"  {fit(group, GROUP - 2)}", DIM)
    line.fill_to(width - figures).add(f"{rate:>{RATE - 1}} ")
    for text in times:
        line.add(f"{text:>{LATENCY - 1}} ")
    return line.build()
