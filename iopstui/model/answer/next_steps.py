"""What to do next: every step that an answer may name. {0} is what the row knows of it."""

from __future__ import annotations

NEXT = {
    "gone": "see the kernel's log: dmesg | tail",
    "resume": "dmsetup resume {0}",
    "silent": "see the kernel's log: dmesg | tail",
    "counter": "compare with /sys/block/{0}/inflight; a driver may have lost count",
    "limit": "raise or lift {0}",
    "memory": "free memory: ps aux --sort=-rss | head",
    "ring": "ignore it, or have the program not count as waiting (IORING_ENTER_NO_IOWAIT)",
    "hog": "limit or move it: ionice -c 3 -p {0} (with the scheduler bfq), or io.max of its cgroup",
    "who": "as root: iopstui why {0}",
    "program": "iopstui why {0}",
    "slow": "iopstui watch {0} --probe",
    "layer": "dmsetup table {0}",
    "resync": "echo {1} > /sys/block/{0}/md/sync_speed_max",
    "array": "cat /proc/mdstat; mdadm --detail shows which member is missing",
    "cpu": "find what uses the CPUs: top",
    "longer": "iopstui why {0} --for 60s",
    "flush": "see how much waits to be written: grep -E 'Dirty|Writeback' /proc/meminfo",
    "finding": "{0}",
    "server": "nfsstat -c; ask who runs the server",
}
