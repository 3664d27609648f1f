"""All advice of findings and answers, in one place.

``PROMISES`` remove the cause of the finding: a situation of tests/scoreboard follows each one and
checks that. ``HINTS`` only say where to look, what to compare with, or what may help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NewType

if TYPE_CHECKING:
    # a type of its own, which only ``advise`` makes: no advice can be missing from these tables
    Advice = NewType("Advice", str)
else:
    Advice = str  # a plain str at run time: recordings are decoded by the types of fields

PROMISES: Mapping[str, str] = {
    "direct": "try direct=1: it leaves out the page cache",
    "engine": "try ioengine=libaio or io_uring with direct=1, or more jobs",
    "more-jobs": "try more jobs (numjobs)",
    "fewer-jobs": "try {} with a deeper queue (iodepth)",
    "fsync": "let more writes share one sync, for example fsync={}",
    "overwrite": "compare with overwrite=1: fio writes the file before the run, so that no write "
    "extends it",
    "chunks": "use I/Os of up to {}",
    "pin": "pin it to another CPU (cpus_allowed), or to none",
    "stop-others": "stop {} while you measure: {}",
    "cpu-max": "raise cpu.max of the cgroup{}, or run outside of it",
    "lift-io-max": "lift it: echo '{} {}=max' > {}",
    "lift-blkio": "lift it: echo '{} 0' > {}",
    "iostats": "turn it on: --knob iostats=1 for a run, or echo 1 > /sys/block/{}/queue/iostats",
    "nomerges": "nomerges=2 shows the device without merging",
    "max-sectors": "raise /sys/block/{}/queue/max_sectors_kb, if max_hw_sectors_kb there is larger",
    "nr-requests": "raise nr_requests if the device has the tags, or use a smaller depth",
    "scsi-depth": "raise /sys/block/{}/device/queue_depth if the disk can, or use a smaller depth",
    "other-queues": "jobs on other CPUs (cpus_allowed) reach its other queues; or use a smaller "
    "depth",
    "rq-affinity": "try rq_affinity 2 (now {}): each I/O completes on the CPU that submitted it. "
    "That moves the work; more IOPS are not certain",
    "resume": "if no work on it (LVM, a snapshot) is under way: dmsetup resume {}",
    "thaw": "see the kernel's log (dmesg); fsfreeze -u MOUNTPOINT ends a freeze",
    "resync": "slow it to {1} KiB/s, as root: echo {1} > /sys/block/{0}/md/sync_speed_max",
}

HINTS: Mapping[str, str] = {
    # the job
    "continue": "see who stopped it; to let it go on: pkill -CONT -x fio",
    "numjobs": "compare with more jobs (numjobs)",
    "only-fewer": "compare with {}, at the same iodepth={}",
    "larger-blocks": "compare with larger blocks (bs): each byte may cost less CPU",
    "in-flight": "with larger I/Os, or more of them at a time (threads, a deeper queue), it may do "
    "more if {} can: iopstui sweep measures that",
    "deeper": "compare with a larger iodepth or more jobs: one I/O at a time waits for each answer",
    "pace": "compare without {}: the disk may do more",
    "never-written": "compare with blocks that have data: write them first (rw=write)",
    "shallower": "compare with a smaller iodepth: if the IOPS stay the same, the other I/Os only "
    "waited",
    "submitters": "compare with more jobs (numjobs) and a smaller iodepth",
    "only-reading": "compare with the same job, only reading, on the device itself",
    "one-direction": "compare with the same job with {0} alone: a limit or a slow path for {0} may "
    "show in their rate",
    "priority": "compare with the job without {} (it may have no effect against programs of other "
    "sessions, see sched_autogroup_enabled, or of other cgroups)",
    "cpus": "compare with cpus_allowed={}",
    "block-size": "compare with bs={}",
    "stripes": "compare with whole stripes: {}",
    "offset": "compare with an offset and a blockalign that are multiples of {}",
    "partition": "another start of the partition may avoid it: see parted's align-check",
    "twice": "compare with twice the block size: it may show whether IOPS or bandwidth is limited",
    "depth": "compare with depth {}: it had about the same IOPS at a lower latency",
    "again": "compare with a second run over the same blocks",
    "idle": "leave the disk idle as long as it ran, then compare: if it is fast at first again, "
    "a credit or a cache is likely",
    "refill": "without I/O they may be full after {} (by the provider's figures); a higher "
    "baseline may help",
    "bought": "a larger volume or instance may do more; a deeper queue only waits longer",
    "limits": "compare with the limits of your volume or instance",
    "undo": "compare once more: change it back, then again; one change proves little",
    "pairs": "compare them in more pairs (c)",
    "repeat": "compare them again (c): with one run each it may be chance",
    # who else uses the disk
    "limit": "the limit {} of {} may be raised, or lifted",
    "program": "see who uses the disk (root sees all): iopstui why",
    "cgroups": "u and Tab show all cgroups; systemctl set-property or the container's limits may "
    "hold it back (IOWriteBandwidthMax=, IOReadBandwidthMax=)",
    "hog": "run process {} at another time; a limit may hold it back, too (io.max, "
    "systemctl set-property)",
    "hog-bfq": "ionice -c 3 -p {} may let others go first",
    "root": "see more as root: iopstui why {}",
    "upper": "I/Os may wait in the device on it: see iopstui why {}",
    "many": "see all programs that use it: iopstui live {}",
    # CPUs, interrupts, memory
    "cpu-users": "find what uses the CPUs: top, or pidstat 1",
    "operator": "the host may be overcommitted, or this guest may have a CPU limit: ask its "
    "operator",
    "rq-affinity-cannot": "rq_affinity can't move it: {}",
    "other-cpu": "rq_affinity is 2 already: another CPU for the interrupt may help",
    "irq": "echo {} > /proc/irq/{}/smp_affinity_list may bring it there, if the kernel does not "
    "manage it; irqbalance may move it again",
    "irqbalance": "irqbalance may have moved it: compare with a run without it",
    "c-states": "without deep C-states: cpupower -c {} idle-set -D 1, then compare",
    "governor": "cpupower -c {} frequency-set -g performance, then compare",
    "memory": "see vmstat 1 for swapping (si, so) and free memory; where much is free, a higher "
    "memory.high or memory.max of its cgroup may help",
    "memory-users": "see what uses the memory: ps aux --sort=-rss | head",
    "ring": "ignore this pressure; a program may sleep without counting (IORING_ENTER_NO_IOWAIT, "
    "Linux 6.15)",
    # disks and layers
    "log": "see the kernel's log: dmesg",
    "scheduler": "compare with scheduler none",
    "passthrough": "Linux 6.13 or later may count them after: "
    "echo 1 > /sys/block/{}/queue/iostats_passthrough",
    "extents": "filefrag -v shows the file's extents",
    "iocost": "see io.cost.qos and io.weight of the cgroup",
    "held": "see io.latency of the cgroups, and queue/wbt_lat_usec of the disk",
    "thin-pool": "see dmsetup status {}; a larger pool (lvextend), or fstrim, may make room",
    "table": "dmsetup table {} shows what that layer does",
    "array": "see /proc/mdstat; mdadm --detail shows its members",
    "loop": "compare with losetup --direct-io=on {}: it may be faster, or slower",
    "encryption": "cryptsetup benchmark shows what a CPU encrypts",
    "paths": "multipath -ll, or nvme list-subsys, shows them",
    "cool": "let it cool, then run again and compare",
    "link": "check the slot and the cable: lspci -vv (LnkSta against LnkCap)",
    "error-log": "see its error log: iopstui devices {0}n1, or nvme error-log /dev/{0}",
    "health": "back up its data; see its health: smartctl -a /dev/{}",
    "volume-limit": "a volume with more provisioned IOPS or throughput may do more; a deeper queue "
    "only waits longer",
    "instance-limit": "an instance type with a higher EBS limit may do more; a larger volume alone "
    "does not raise it. All EBS volumes of the instance share it",
    "slow-member": "compare its health, temperature and link with theirs: smartctl -x /dev/{}; "
    "the drive's own work, such as garbage collection, would pass",
    "siblings": "if its requests are not harder (random where theirs are sequential, data where "
    "theirs was never written), compare its health with theirs: smartctl -x /dev/{}",
    "amplification": "larger or sequential writes, TRIM, or more unused space may lower it",
    "counter": "compare with /sys/block/{}/inflight; it may hold them, or have lost count",
    "slow": "see whether the device or its queue is slow, as root: iopstui watch {} --probe",
    "longer": "look longer: iopstui why {} --for 60s",
    # servers
    "server": "see nfsstat -c; ask who runs the server",
    "nfs-stalled": "check the server and the network (ping); a hard mount waits until the server "
    "is back, and umount -f may end its requests",
    "smb-stalled": "check the server and the network (ping); I/O in flight may fail; with the "
    "mount option hard, later I/O waits until the server is back; umount -f may end it",
    "nfs-retrans": "see packet loss (ss -ti, ip -s link) and the server's load; the kernel's log "
    'has "server not responding"',
    "smb-reconnect": 'see the kernel\'s log ("has not responded", "reconnect"), packet loss (ss '
    "-ti, ip -s link), and whether the server was restarted",
    "nfs-server": "compare with ping to the server; watch the disk there: iopstui watch",
    "smb-server": "compare with the round-trip time of packets (ping, ss -ti) and with a lower "
    "iodepth; watch the disk of the server",
    "nfs-queue": "{}, or raise sunrpc.tcp_max_slot_table_entries (NFS 3) or max_session_slots (NFS "
    "4): either may help",
    "nfs-rsize": "larger rsize and wsize of the mount may help; the server may set a limit "
    "(max_block_size of nfsd)",
    "smb-rsize": "larger rsize and wsize of the mount may help; the server may set a limit (smb2 "
    "max read, smb2 max write), and SMB 1 and 2.0 have one of 64 KiB",
    "nfs-attributes": "look for noac, actimeo=0 or lookupcache=none among the mount options, and "
    "for a program that opens or lists files all the time",
    "net-loss": "look at the link: ip -s link, ethtool -S, the switch's drops; a too large MTU "
    "loses only long packets",
    "net-window": "look at the server: its CPU, its disk or its receive buffer (tcp_rmem) may be "
    "the limit",
    "nconnect": "mount with nconnect=4: several connections then share the work, which may help",
    # several hosts
    "host": "Enter shows the host",
    "slow-start": "find what starts slowly: a file to lay out, a busy host, a slow connection",
    "fewer-hosts": "compare with fewer hosts: the sum may stay the same",
    "another-host": "compare its limits and volume class with those of another host",
    "one-alone": "compare with one of the two alone: it may then do as much as the others",
    "half-hosts": "compare with half of the hosts: if each then does more, the limit may be shared",
}

NO_ADVICE = Advice("")


def advice_on(host: str, advice: Advice) -> Advice:
    """The same advice; a command in it is to be run on ``host``."""
    return Advice(f"{advice} (on {host})") if "iopstui " in advice else advice


def advise(kind: str, *values: object) -> Advice:
    """The advice of this kind, with ``values`` filled in."""
    return Advice((PROMISES.get(kind) or HINTS[kind]).format(*values).rstrip())
