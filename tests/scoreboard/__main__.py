"""Are iopstui's findings right? `make scoreboard`: known situations, made for real (root).

Each scenario makes a device in a known situation, watches it with a session as the screen does,
and knows which findings that session must have: right if it has them and no others; missed if one
is missing; wrong if one is there that isn't true; broken if the situation did not come about, as
the kernel's counters show. Exit code 0 if nothing is wrong and at most a tenth missed or broken.

A scenario belongs to a place. "here" is this machine, where loop devices on files in memory are
made, and cgroups. The others are virtual machines whose disks are thrown away afterwards. For each
an environment variable holds a command that runs its arguments there as root, e.g. "ssh root@lab"
(the checkout and Python must be at the same paths); scenarios of a place without one are left out.

IOPSTUI_LAB                  4 CPUs, modules null_blk, scsi_debug, dm, md, cgroup v2; disks by their
                             serial numbers: VBLK4Q (virtio-blk, 4 queues), VBLK1Q (virtio-blk, 1
                             queue), NVME4Q (NVMe), SATA1Q (AHCI), VSLOW4Q (virtio-blk, 500 IOPS)
IOPSTUI_LAB_SHARED_VECTORS   VSHARED4Q: virtio-blk with num-queues=4,vectors=2
IOPSTUI_LAB_THREADIRQS       VBLK1Q, and threadirqs on the kernel's command line
IOPSTUI_LAB_SOCKETS          VBLK1Q; two sockets of two CPUs, a memory node each; VNODE1: a virtio
                             disk of one queue on node 1

--answers asks `iopstui why` in further situations, which need the disks of IOPSTUI_LAB and SSLOW4Q
(SCSI, 500 IOPS). It loads the probe often, which changes the running
kernel's code: QEMU's TCG needs thread=single.

A machine that is itself such a place is told so: tests/scoreboard --inside lab.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from answers import ASKS, WORDS, Situation, answers_of, import_program, left  # noqa: E402
from devices import disk, loop, null  # noqa: E402
from judge import BROKEN, MISSED, OUT, RIGHT, WRONG, Verdict, passes  # noqa: E402
from outcome import Outcome, counted, from_json, left_out, lines, markdown, to_json  # noqa: E402
from quiet import scenarios  # noqa: E402
from run import outcome_of, run, warm_up  # noqa: E402
from scenario import HERE, LAB, PLACES, Scenario  # noqa: E402
from scenarios import ALL  # noqa: E402
from situations import SITUATIONS  # noqa: E402

from lessons import play_beside_neighbours  # noqa: E402

MAX_FALSE_SHARE = 0.01
SHARES = (0.1, 0.3, 0.6, 0.0)
LESSON_DEVICES = {
    HERE: (("1", loop()), ("3", loop())),
    LAB: (("1", null(completion_nsec=2_000_000)), ("3", disk("VBLK1Q"))),
}
"""The disks on which --lessons plays, by place."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for. Returns the exit code."""
    options = _parser().parse_args(arguments)
    if options.quiet_runs:
        return _quiet_runs(options)
    if options.lessons:
        return _lessons(options)
    if options.answers:
        return _answers(options)
    chosen = [scenario for scenario in ALL if _is_selected(scenario, options)]
    if not chosen:
        raise SystemExit("scoreboard: no such scenario; see --list")
    if options.list:
        for scenario in chosen:
            name, place = scenario.name, scenario.place
            print(f"{name:<24} {place:<20} {scenario.length:>3.0f} s  {scenario.what}")
        return 0
    # an end by a signal removes the devices, too
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    outcomes = []
    started_at = time.monotonic()
    for outcome in _outcomes(chosen, options.inside):
        outcomes.append(outcome)
        _show(outcome, options)
    if options.json:
        return 0 if passes([outcome.verdict.word for outcome in outcomes]) else 1
    if options.markdown:
        Path(options.markdown).write_text("\n".join(markdown(outcomes)) + "\n")
    print(f"\n{counted(outcomes)}; {time.monotonic() - started_at:.0f} s")
    for line in left_out(outcomes):
        print(line)
    return 0 if passes([outcome.verdict.word for outcome in outcomes]) else 1


def _quiet_runs(options: argparse.Namespace) -> int:
    """Run ordinary jobs and count those with a false finding."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    warm_up()
    outcomes = []
    for scenario in scenarios(options.quiet_runs, options.seed):
        outcomes.append(run(scenario))
        _show(outcomes[-1], options)
    verdicts = [outcome.verdict.word for outcome in outcomes]
    wrong, ran = verdicts.count(WRONG), len(verdicts) - verdicts.count(OUT) - verdicts.count(BROKEN)
    if not options.json:
        print(f"\n{ran} quiet runs (seed {options.seed}): {wrong} with a false alarm")
    return 1 if wrong > MAX_FALSE_SHARE * ran or not ran else 0


def _lessons(options: argparse.Namespace) -> int:
    """Play lessons 1 and 3 beside a neighbour of 0, 10, 30 and 60 % of the I/O."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    wrong = graded = played = 0
    for name, device in LESSON_DEVICES[options.inside]:
        for play, mistakes in play_beside_neighbours(name, device, SHARES, options.lessons // 2):
            played, wrong = played + 1, wrong + bool(mistakes)
            graded += sum(bool(right) for right in play.grades.values())
            print(f"lesson {name}, {play.text}", flush=True)
            for question in mistakes:
                print(f"  WRONG: {question}", flush=True)
    print(f"\n{played} plays, {graded} answers graded, {wrong} plays with a wrong grade")
    return 1 if wrong or not played else 0


def _answers(options: argparse.Namespace) -> int:
    """Ask `iopstui why` in each situation, and count its answers."""
    chosen = [one for one in SITUATIONS if _is_selected(one, options)]
    if options.list:
        for one in chosen:
            asked = " ".join(one.right(ask) or "-" for ask in ASKS)
            print(f"{one.name:<20} {asked:<16} {one.what}")
        return 0
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    more = ["--answers", *(["--keep", options.keep] if options.keep else [])]
    outcomes = []
    for outcome in _answers_at(chosen, options, more):
        outcomes.append(outcome)
        _show(outcome, options)
    if options.markdown:
        Path(options.markdown).write_text("\n".join(markdown(outcomes)) + "\n")
    if not options.json:
        for ask in ASKS:
            counts = Counter(outcome.verdict.word for outcome in outcomes
                             if outcome.name.endswith(f" {ask}"))  # fmt: skip
            print(f"{ask:<10}", ", ".join(f"{counts[word]} {WORDS[word]}" for word in
                                          (RIGHT, MISSED, WRONG, BROKEN, OUT)))  # fmt: skip
    return 0 if passes([outcome.verdict.word for outcome in outcomes]) else 1


def _answers_at(
    chosen: Sequence[Situation], options: argparse.Namespace, more: Sequence[str]
) -> Iterator[Outcome]:
    if options.inside == LAB:
        import_program()
        for one in chosen:
            yield from answers_of(one, options.keep)
    else:
        names = [one.name for one in chosen]
        stubs = [stub for one in chosen for stub in left(one, Verdict(OUT))]
        yield from _run_remotely(LAB, stubs, names, more)


def _is_selected(scenario: Scenario | Situation, options: argparse.Namespace) -> bool:
    names = not options.only or any(
        fnmatch.fnmatch(scenario.name, pattern) for pattern in options.only
    )
    place = getattr(scenario, "place", LAB)
    return names and (not options.place or place in options.place)


def _show(outcome: Outcome, options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps(to_json(outcome)), flush=True)
    elif options.verbose or outcome.verdict.word != OUT:
        for line in lines(outcome, options.verbose):
            print(line, flush=True)


def _outcomes(chosen: Sequence[Scenario], inside: str) -> Iterator[Outcome]:
    for place in PLACES:
        batch = [scenario for scenario in chosen if scenario.place == place]
        if batch and place == inside:
            warm_up()
            yield from map(run, batch)
        elif batch:
            stubs = [outcome_of(scenario, Verdict(OUT)) for scenario in batch]
            yield from _run_remotely(place, stubs, [scenario.name for scenario in batch])


def variable(place: str) -> str:
    """The environment variable with the command that runs programs at a place."""
    return "IOPSTUI_" + place.upper().replace("-", "_")


def _run_remotely(
    place: str, stubs: Sequence[Outcome], names: Sequence[str], more: Sequence[str] = ()
) -> Iterator[Outcome]:
    """Run these of a place there. ``stubs``: an outcome without a verdict for each one that must
    come back."""
    command = shlex.split(os.environ.get(variable(place), "")) if place != HERE else []
    if not command:
        why = "another place" if place == HERE else f"{variable(place)} names no command"
        yield from (replace(stub, verdict=Verdict(OUT, (why,))) for stub in stubs)
        return
    remote_command = ["sh", "-c", 'cd "$0" && exec "$@"', str(ROOT), sys.executable,
             str(Path(__file__).parent), "--inside", place, "--json", "--place", place, *more,
             "--only", *names]  # fmt: skip
    remaining = {stub.name: stub for stub in stubs}
    with subprocess.Popen(
        [*command, *remote_command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                outcome = from_json(json.loads(line))
                del remaining[outcome.name]
                yield outcome
    why = f"{variable(place)} ended with exit code {process.returncode}"
    yield from (replace(stub, verdict=Verdict(BROKEN, (why,))) for stub in remaining.values())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make scoreboard", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--only", nargs="+", metavar="PATTERN", help="scenarios of these names")
    parser.add_argument("--place", nargs="+", choices=PLACES, help="those of these places")
    parser.add_argument(
        "--quiet-runs",
        type=int,
        default=0,
        metavar="N",
        help="run N ordinary jobs of 20 s each instead, on this machine, quiet and "
        "beside other load: at most 1 in 100 may be told anything wrong",
    )
    parser.add_argument("--lessons", type=int, default=0, metavar="N",
                        help="play lessons 1 and 3 N times in all instead, beside a neighbour of "
                        "0 to 60 %% of the I/O: no answer may be graded wrong")  # fmt: skip
    parser.add_argument(
        "--answers",
        action="store_true",
        help="make situations and compare the answers of `iopstui why` instead",
    )
    parser.add_argument(
        "--keep",
        default="",
        metavar="DIR",
        help="--answers: keep each answer and the counters in this directory there",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="S",
                        help="which jobs --quiet-runs takes (1)")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="which there are")
    parser.add_argument("--inside", default=HERE, choices=PLACES, metavar="PLACE",
                        help="which place this machine is (here)")  # fmt: skip
    parser.add_argument("--verbose", action="store_true",
                        help="every sentence, and what fio and the disk did")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="a line of JSON for each scenario")
    parser.add_argument("--markdown", metavar="FILE", help="write the table into a file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
