"""The help: every key, every panel, every abbreviation and flag."""

from __future__ import annotations

from iopstui.ui.actions import helped
from iopstui.ui.keys import LIVE_ACTIONS, REPLAY_ONLY
from iopstui.ui.parts import replay

Section = tuple[str, tuple[tuple[str, str], ...]]

SCREENS: tuple[Section, ...] = (
    (
        "Keys of a lesson (l, or iopstui lesson NAME)",
        (
            ("enter, right", "reads on, goes on, or starts the run that the page is about; on the"
             " dashboard, after a run: goes on"),
            ("a, b, c", "answer a question, before it is measured"),
            ("left", "back to earlier pages; the answers given there stay"),
            ("escape", "stops a run; else leaves the lesson, and l goes on with it where it was."
             " What it changed is restored, its files are removed"),
            ("r", "after a run that failed or was stopped: again"),
        ),
    ),
    (
        "A sweep or a comparison (w, c)",
        (
            ("esc, w, c", "to the dashboard, and back with w; it goes on"),
            ("0, 1 2 3 4, tab", "everything, or one pane on the whole screen"),
            ("up down", "scroll the table, or the pane that has the screen"),
            ("n", "a new one, once it is over; the result stays until that begins"),
            ("settle", "the first seconds of each run, which are not counted"),
            ("knee", "the point with the most IOPS for its latency: beyond it, more depth buys"
             " latency rather than IOPS. Shown when all points are measured"),
            ("N=X*R of", "Little's law: IOPS x mean latency is how many I/Os were under way, of"
             " as many as the job asks for; ! where they are apart by more than 10 %"),
            ("a b c, A B C", "the lines' points: small letters the mean, capitals p99"),
            ("A B in a comparison", "one second of a run of that variant; the line is the mean of"
             " its runs"),
            ("*", "a difference that the runs show (at the 5 % level)"),
        ),
    ),
)  # fmt: skip
"""Keys of other screens than the dashboard, and their words."""

PANELS: tuple[Section, ...] = (
    (
        "Charts",
        (
            ("IOPS", "I/Os per second: the line is fio's, the shaded area is the device's own"
             " count. Area below the line: the kernel merged requests, or a cache answered."
             " Area above it: somebody else uses the device, or requests were split"),
            ("latency", "fio's p50, p99 and p99.9 of each second, logarithmic scale"),
            ("heat map", "each column is a second's histogram: the darker a cell, the more of its"
             " I/Os took that long; · is a single one already"),
            ("time", "stands still until the chart is full, then moves on by a quarter"),
            ("gaps", "nothing was measured there; a gap is never drawn as 0"),
            ("│ with words", "a mark: a run began, a tunable was changed, or you pressed m"),
        ),
    ),
    (
        "fio, this second",
        (
            ("IOPS, MiB/s", "completed I/Os and bytes (1 MiB = 1048576 bytes) per second"),
            ("slat", "submission latency: the time to hand an I/O to the kernel, mean"),
            ("clat", "completion latency: from there until it is done, mean"),
            ("p50 ... p99.99", "this share of the second's I/Os was faster; from fio's own"
             " histogram, within 0.8 %"),
            ("max", "the slowest I/O of the second, within the same 0.8 %"),
            ("depth", "how many I/Os were in flight when another was issued, in percent"),
            ("job CPU", "user and system time of fio's jobs, percent of one CPU, summed"),
            ("ctx/s", "context switches of fio's jobs per second"),
            ("over ... s", "the length of the interval that the figures are of"),
        ),
    ),
    (
        "kernel, this second (/proc/diskstats; names as in iostat -x)",
        (
            ("r/s w/s", "completed requests per second, after merging"),
            ("rMB/s wMB/s", "MiB read and written per second"),
            ("rrqm/s wrqm/s", "requests per second that were merged into others"),
            ("r_await w_await", "mean time of a request in queue and device"),
            ("aqu-sz", "mean number of requests in queue and device"),
            ("infl", "requests in flight at the moment of the reading"),
            ("util%", "time with at least one request in flight; 100 does not mean that a"
             " device with many queues can do no more"),
            ("d/s f/s", "discards and flushes per second"),
            ("└name", "a device that the target sits on: the same I/O is counted there again;"
             " ×2: it lies below two of the devices above"),
            ("sum of 2", "the devices that the jobs work on, each counted once; awaits are all"
             " their waiting over all their requests, and util has no sum"),
            ("–", "there was no such request, so there is nothing to show"),
        ),
    ),
    (
        "CPUs, this second",
        (
            ("hctx", "the hardware queue of this CPU's requests (+: more than one; –: none)"),
            ("job", "fio jobs that ran on this CPU last; * is bound to it, \"0 +3\" are four"),
            ("irq/s", "interrupts of the target's device taken by this CPU; one may report"
             " several I/Os"),
            ("BLOCK/s", "block softirqs: completions that were handed on to this CPU"),
            ("IPI/s", "function-call interrupts from other CPUs, for whatever reason"),
            ("usr sys iowait", "percent of the CPU's time, as the kernel's tick samples it"),
            ("irq soft idle", "the same; irq is left out on kernels that do not account it"),
            ("I/Os per interrupt", "how many completions one interrupt of the device reported"),
            ("inside the hard interrupt", "the kernel completes there, so BLOCK/s stays 0: the"
             " device is busy all the same"),
            ("cells", "where CPUs are many: one cell each, fuller is more; gaps part groups that"
             " share a cache; the busiest are named, then the sum"),
            ("busy", "a bar of everything but idle and iowait"),
        ),
    ),
    (
        "runs (v: all of them)",
        (
            ("what was changed", "against the run before: options of the job, settings of the disk;"
             " of the first run what it does. A run that was stopped before its first second is"
             " left out"),
            ("IOPS, MiB/s", "means over the seconds that were measured, without fio's ramp"),
            ("before, base", "how its IOPS differ from those of the run before, and of the base"
             " (V)"),
            ("p50 p99", "of all I/Os of the run in one histogram"),
            ("util% aqu-sz", "the device's means over the run"),
        ),
    ),
    (
        "hosts (iopstui fleet HOSTS)",
        (
            ("97 of 100 hosts", "so many are in the totals of this second; who is missing is not"
             " counted as 0"),
            ("p99", "of the host's own I/Os in this second; await: the mean time of its device's"
             " requests; util%: of its device, – where it works on several"),
            ("state", "connects, ready, runs, late (silent for 2.5 s), missing (no figures of this"
             " second), partly (less than 80 % of it), lost (its connection has ended), failed,"
             " done, stopped, no part (it did not become ready)"),
            ("last minute", "its IOPS, all hosts by one scale"),
            ("p99 / median", "in the map: a cell is as dark as the worst host of its row is far"
             " from the middle one of all hosts in that second; ? was not measured"),
            ("slowest, then oddest", "who is gone, the highest p99, then those that are farthest"
             " from the middle in IOPS or p99 over the last seconds"),
            ("started within", "between the first and the last start of fio, by one clock"),
        ),
    ),
    (
        "Notes beside the figures",
        (
            ("ramp", "ramp_time: fio warms up; latencies are not taken yet"),
            ("late", "fio has not reported for longer than it should; its last figures stay"),
            ("a short interval", "the first or last part of a second"),
            ("gtod_reduce", "the job asks fio not to look at the clock: no latencies at all"),
            ("submissions", "fio's count of issued I/Os, where completions can't be known"),
            ("creating its file", "the file is laid out first; nothing is measured then"),
        ),
    ),
)  # fmt: skip


def help_sections(first: str = "") -> tuple[Section, ...]:
    """All of it, in the order of the help screen; ``first`` is the title of what comes before
    all others."""
    from iopstui.ui import fleet_keys

    found = (
        ("Keys", helped(LIVE_ACTIONS)),
        *SCREENS,
        (replay.HELP, helped(REPLAY_ONLY)),
        (fleet_keys.HELP, helped(fleet_keys.FLEET_ONLY)),
        *PANELS,
    )
    return tuple(sorted(found, key=lambda section: section[0] != first))
