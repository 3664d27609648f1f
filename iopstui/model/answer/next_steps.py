"""What to do next: every step that an answer may name. {0} is what the row knows of it."""

from __future__ import annotations

NEXT = {
    "gone": "see the kernel's log: dmesg | tail",
    "resume": "if no work on it (LVM, a snapshot) is under way: dmsetup resume {0}",
    "silent": "see the kernel's log: dmesg | tail",
    "counter": "compare with /sys/block/{0}/inflight; a driver may have lost count",
    "limit": "raise or lift {0}",
    "memory": "see what uses the memory: ps aux --sort=-rss | head",
    "ring": "ignore it, or have the program not count as waiting (IORING_ENTER_NO_IOWAIT)",
    "hog": "limit it (io.max of its cgroup, systemctl set-property), or run it at another time",
    "hog-bfq": "let others go first: ionice -c 3 -p {0}",
    "who": "as root: iopstui why {0}",
    "many": "see all who use it: iopstui live {0}",
    "slow": "see whether the device or its queue is slow, as root: iopstui watch {0} --probe",
    "layer": "dmsetup table {0}",
    "resync": "slow it to {1} KiB/s, as root: echo {1} > /sys/block/{0}/md/sync_speed_max",
    "array": "cat /proc/mdstat; mdadm --detail shows which member is missing",
    "cpu": "find what uses the CPUs: top",
    "longer": "iopstui why {0} --for 60s",
    "finding": "{0}",
    "server": "nfsstat -c; ask who runs the server",
}
