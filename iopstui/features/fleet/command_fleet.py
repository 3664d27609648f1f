"""`iopstui fleet`: run one job on many hosts at once."""

from __future__ import annotations

import argparse

from iopstui.cli import values
from iopstui.cli.command import Command
from iopstui.cli.options import add_expect, add_interval, add_theme, refuse_theme

EPILOG = """\
HOSTS: user@host:port, separated by commas; ^FILE; with ClusterShell node[01-40], @GROUP and sets
without others, such as '@db!db3'; slurm: the nodes of Slurm's allocation; k8s: pods of Kubernetes.
Others are reached by the system's ssh with its own configuration; it never asks for a password.
Each host needs python3 (3.10) and fio (3.1); iopstui is copied there if it is missing.

TARGET and all options of the job are those of `iopstui run` and apply to every host. A device is
only written with --destroy-data HOST:PATH for each host, PATH in /dev/disk/by-id. Each host makes
its own safety checks, and no host starts unless all are ready. Without --job all hosts watch.

exit codes: 0 done, 1 a host failed or was lost, 2 usage or bad input, 3 refused for safety,
4 an expectation was not met, 5 something needed is missing, 130 interrupted
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("hosts", metavar="HOSTS", help="see below")
    # with a default, because argparse otherwise lists TARGET, too, as missing if HOSTS is missing
    parser.add_argument("target", nargs="*", default=[], metavar="TARGET",
                        help="on each host, see below")  # fmt: skip
    parser.add_argument("--job", metavar="JOB",
                        help="a shipped job or a job file on this machine")  # fmt: skip
    _add_job_options(parser)
    _add_part_options(parser)
    _add_start_options(parser)
    parser.add_argument("--abort", action="append", default=[], metavar="WHEN",
                        help="stop all hosts when this is true: 'read.p99>50ms for 5s'; may be "
                             "repeated")  # fmt: skip
    add_expect(parser, baseline=False)
    parser.add_argument("--probe", action="store_true",
                        help="measure device latency inside the kernel on each host (needs "
                             "root); percentiles cover all hosts' requests")  # fmt: skip
    parser.add_argument("--for", dest="length", type=values.duration, metavar="TIME",
                        help="how long to watch if there is no --job (default: until "
                             "Ctrl-C)")  # fmt: skip
    parser.add_argument("--record", type=values.new_file, metavar="FILE",
                        help="record all hosts' JSON lines in FILE, which must not exist; read "
                             "it with `iopstui merge` or `iopstui report`")  # fmt: skip
    _add_launch_options(parser)
    _add_pod_options(parser)
    parser.add_argument("--format", choices=values.FORMATS,
                        help="print totals instead of showing a screen (default without a "
                             "terminal: table)")  # fmt: skip
    add_theme(parser)
    add_interval(parser)


def _add_part_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--split", action="store_true",
                        help="give each host its own part of TARGET: one file that all hosts see, "
                             "or a shared device")  # fmt: skip
    parser.add_argument("--rotate", type=values.rotation, nargs="?", const=1, default=0,
                        metavar="N",
                        help="with --split: give each host the part of the host N places further "
                             "on (default: 1), so that no host reads what it wrote "
                             "itself")  # fmt: skip
    parser.add_argument("--until-steady", type=values.duration, nargs="?", const=60.0,
                        metavar="ROUND",
                        help="stop all hosts when five rounds (1m each by default) of their total "
                             "are steady by SNIA's rule; after 25 rounds give up with exit code "
                             "4")  # fmt: skip


def _add_start_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--axis", action="append", default=[], metavar="NAME=LIST",
                        help="sweep: hosts=1,2,4..32 runs the job on the first 1, 2, 4 ... hosts "
                             "in turn, iodepth=1,4,16 varies an option of fio; may be "
                             "repeated")  # fmt: skip
    parser.add_argument("--repeats", type=values.sweep_repeats, default=1, metavar="N",
                        help="with --axis: run every point N times, round by round "
                             "(default: 1)")  # fmt: skip
    parser.add_argument("--min-hosts", type=int, metavar="N",
                        help="start as soon as N hosts are ready (default: all)")  # fmt: skip
    parser.add_argument("--connect-timeout", type=values.duration, default=60.0, metavar="TIME",
                        help="how long to wait for a host to connect, including its launcher's "
                             "queue (default: 60s)")  # fmt: skip
    parser.add_argument("--on-loss", choices=("go-on", "stop"), default="go-on",
                        help="whether the others continue when a host is lost (default: "
                             "go-on)")  # fmt: skip
    parser.add_argument("--assume-apart", action="store_true",
                        help="treat network file systems of equal size and free space as "
                             "separate unless proven shared")  # fmt: skip


def _add_launch_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bring", action="store_true",
                        help="copy this iopstui to the hosts even if they have one")  # fmt: skip
    parser.add_argument("--sudo", action="store_true",
                        help="become root on the hosts with sudo (without a "
                             "password)")  # fmt: skip
    parser.add_argument("--launcher", metavar="COMMAND", default="",
                        help="command prefix to use instead of ssh; {host} is the host's name, "
                             "e.g. 'docker exec -i {host} sh -c'; slurm: srun; k8s: "
                             "kubectl exec")  # fmt: skip
    parser.add_argument("--allocate", metavar="OPTIONS",
                        help="let Slurm allocate the hosts for this run; options of salloc, e.g. "
                             "'-N 4 --partition fast'")  # fmt: skip


def _add_pod_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-l", "--selector", metavar="LABELS",
                        help="k8s: label selector of the pods (default: app=iopstui)")  # fmt: skip
    parser.add_argument("-n", "--namespace", metavar="NAME",
                        help="k8s: namespace of the pods (default: that of kubectl's "
                             "context)")  # fmt: skip
    parser.add_argument("--container", metavar="NAME",
                        help="k8s: container of the pods (default: the first one)")  # fmt: skip
    parser.add_argument("--print-manifest", choices=("job", "daemonset"),
                        nargs="?", const="job", metavar="KIND",
                        help="k8s: print a manifest for kubectl apply: job (default) or daemonset, "
                             "one pod per node, with --pvc or --local-path")  # fmt: skip
    parser.add_argument("--pvc", metavar="NAME",
                        help="manifest: persistent volume claim to test, at /data")  # fmt: skip
    parser.add_argument("--local-path", metavar="DIRECTORY",
                        help="manifest: directory of each node to test, at /data")  # fmt: skip
    parser.add_argument("--replicas", type=int, metavar="N",
                        help="manifest: number of pods of a job")  # fmt: skip
    parser.add_argument("--image", metavar="IMAGE",
                        help="manifest: container image with python3 and fio (default: "
                             "iopstui)")  # fmt: skip


def _add_job_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE",
                        help="set a fio option for every job in the file")  # fmt: skip
    parser.add_argument("--size", metavar="SIZE", help="size of each scratch file, or of the area "
                        "used")  # fmt: skip
    parser.add_argument("--destroy-data", action="append", default=[], metavar="HOST:PATH",
                        help="allow this host to overwrite PATH; without TARGET it is also the "
                             "host's target; may be repeated")  # fmt: skip
    parser.add_argument("--knob", action="append", default=[], metavar="NAME=VALUE[@SECONDS]",
                        help="change a device tunable for the run")  # fmt: skip
    parser.add_argument("--bind", choices=("queues",),
                        help="bind each fio job to a CPU of a different hardware "
                             "queue")  # fmt: skip
    parser.add_argument("--no-fence", action="store_true",
                        help="run your own job file that writes, even if the kernel cannot "
                             "restrict fio to its files")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Run the job on all hosts to its end, or watch their disks."""
    from iopstui.features.fleet.program.run import run_fleet

    refuse_theme(arguments)
    return run_fleet(arguments)


COMMAND = Command(
    "fleet", 35, "run a job on many hosts and add up the results", add_arguments, run, epilog=EPILOG
)
