"""The help for the screen of many hosts."""

from __future__ import annotations

from iopstui.features.fleet.screen.keys import HELP, FleetKeys, FleetReportKeys

TITLE = HELP
ACTIONS = (*FleetKeys.ACTIONS, *FleetReportKeys.ACTIONS)
PANELS = (
    (
        "hosts (iopstui fleet HOSTS)",
        (
            ("97 of 100 hosts", "hosts in the totals of this second; missing hosts are not "
                                "counted as 0"),
            ("p99", "of the host's I/Os in this second; await: mean time of its device's "
                    "requests; util%: of its device, – if it has several"),
            ("state", "connects, ready, runs, late (silent for 2.5 s), missing (no figures for "
                      "this second), partly (less than 80 % of it), lost (connection ended), "
                      "failed, done, stopped, idle (between two runs), left out (never became "
                      "ready)"),
            ("last minute", "its IOPS, on one scale for all hosts"),
            ("p99 / median", "in the map: the fuller, the farther the worst host of the row is "
                             "from the median of all hosts in that second; ?: not measured"),
            ("slowest, then outliers", "lost hosts, the highest p99, then the farthest from the "
                                     "median in IOPS or p99 over the last seconds"),
            ("started within", "time between the first and the last start of fio, by one clock"),
        ),
    ),
)  # fmt: skip
