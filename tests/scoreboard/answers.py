"""Is the answer of `iopstui why` right? Each situation is made once, and five questions are asked.

The table states the right answer before anything is run: the exit codes, the program to name, and
words that must be in it. An answer is wrong if it names another program, or if its exit code is 4
instead of 0 or 0 instead of 4. It is missed if its exit code is 6 ("can't tell") without need, or
if it names no program although one does most of the I/O. It is broken if the kernel's counters of
the same seconds don't show the situation. An ordinary user cannot know what another user's process
waits for, so for that question 6 is always right.

Each question is asked by a fork of this process, which has imported the program: in an emulated
machine that saves half of the CPU time."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import json
import os
import pkgutil
import re
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from effect import Effect, Span, State, read_state
from judge import BROKEN, MISSED, OUT, RIGHT, WRONG, ReportedFinding, Verdict
from outcome import Outcome
from run import warm_up
from scenario import LAB, Absent, Bench, Beside, Proof, Recipe, kernel_name
from scenarios.accounts import end_group

ASKS = ("root", "user", "root-disk", "root-pid", "user-pid")
ROUNDS = (("root", "user"), ("root-disk", "user-pid"), ("root-pid",))
"""What is asked at the same time. Never two questions as root: each one's probe would count the
cost of the other."""
STATES = (
    "/proc/diskstats",
    "/proc/mdstat",
    "/proc/pressure/io",
    "/proc/pressure/memory",
    "/proc/pressure/cpu",
)
WAITS = "4"
ASKER = 65533
"""User ID of the ordinary user who asks."""
LOOK_S = 0.25
ERRORS = "IOPSTUI_SCOREBOARD_ERRORS"
"""The environment variable that shows what the programs write to standard error."""
PR_SET_DUMPABLE = 4
MEMORY = "/run"
"""Directory for files. Not below /dev, where a file is taken for an unknown device."""
ROOT = Path(__file__).resolve().parents[2]
WORDS = {RIGHT: "right", MISSED: "can't tell", WRONG: "wrong", BROKEN: "broken", OUT: "left out"}


@dataclass(frozen=True)
class Situation:
    """``codes`` are the right exit codes of each of ASKS: several ("46") if the truth is between
    them, "-" for a question that is not asked. A single word counts for all questions; for user-pid
    6 is right, too.

    The questions with a process number are about the first program of ``load``, unless ``who``
    finds another. ``hog`` is a pattern for the program that does more than half of the I/O (PID is
    the number of the first program); root's answers about disks must match it, and name no other
    program. ``says`` must be in root's answer about all disks or in its evidence (OTHER is a
    further disk), ``never`` in no answer. ``asleep`` is a pattern of "state function", which looks
    at the process must show if it waits for something else than a disk. ``settle``: seconds from
    the beginning of the load to the first question."""

    name: str
    what: str
    device: Recipe
    load: tuple[Beside, ...]
    codes: str
    proof: Proof
    hog: str = ""
    says: str = ""
    never: str = "(?!)"
    asleep: str = ""
    who: Callable[[Bench], int] = field(default=lambda bench: bench.pids[0])
    settle: float = 2.0

    def right(self, ask: str) -> str:
        """The right exit codes, as digits; "" if the question is not asked."""
        words = self.codes.split()
        if len(words) == 1:
            return "".join(sorted({*self.codes, *("6" * (ask == "user-pid"))}))
        return words[ASKS.index(ask)].replace("-", "")


@dataclass(frozen=True)
class Answered:
    """The result of one question: exit code, JSON, cost."""

    code: int
    document: Mapping[str, Any]

    @property
    def text(self) -> str:
        """All sentences."""
        return "\n".join(self.document.get("sentences", ()))

    @property
    def rule(self) -> str:
        """The rule of the first answer."""
        return next((one["rule"] for one in self.document.get("answers", ())), "")


def answers_of(situation: Situation, keep: str = "") -> Iterator[Outcome]:
    """Make the situation, ask, and judge each answer. ``keep``: a directory for the answers and the
    counters of the same seconds."""
    missing = {stub.name: stub for stub in left(situation, Verdict(OUT))}
    verdict = Verdict(BROKEN)
    try:
        for outcome in _observed(situation, keep):
            del missing[outcome.name]
            yield outcome
    except Absent as absent:
        verdict = Verdict(OUT, (str(absent),))
    except Exception as error:
        first = error.__context__ or error
        verdict = Verdict(BROKEN, (str(first) or repr(first),))
        print(f"{situation.name}: {verdict.why[0]}", file=sys.stderr)
    yield from (replace(stub, verdict=verdict) for stub in missing.values())


def left(situation: Situation, verdict: Verdict) -> Iterator[Outcome]:
    """An outcome for each question about a situation that could not be made."""
    for ask in filter(situation.right, ASKS):
        yield Outcome(f"{situation.name} {ask}", LAB, situation.what,
                      (situation.right(ask),), (), verdict)  # fmt: skip


def _observed(situation: Situation, keep: str) -> Iterator[Outcome]:
    with ExitStack() as stack:
        bench = Bench(stack, Path(stack.enter_context(tempfile.TemporaryDirectory(
            prefix="iopstui-scoreboard-", dir=MEMORY))))  # fmt: skip
        bench.here.chmod(0o755)
        bench.path = situation.device(bench)
        for begin in situation.load:
            begin(bench)
        time.sleep(situation.settle)
        known = names(bench)
        for asks in ROUNDS:
            asked = [ask for ask in asks if situation.right(ask)]
            pid = situation.who(bench) if bench.pids else 0
            before = read_state(time.monotonic(), bench.disk, STATES)
            answered, looks = _ask({ask: _arguments(ask, bench, pid) for ask in asked}, pid)
            after = read_state(time.monotonic(), bench.disk, STATES)
            text = "\n".join(f"{count} {look}" for look, count in looks.most_common())
            after = replace(after, watched={**after.watched, "looks": text})
            effect = Effect([Span(before, after)])
            for ask in asked:
                outcome = judged(situation, ask, answered[ask], effect, bench, known)
                if keep:
                    _keep(Path(keep), outcome, answered[ask], effect)
                yield outcome


def _arguments(ask: str, bench: Bench, pid: int) -> list[str]:
    what = {"root-disk": [bench.node], "root-pid": [f"{pid}"], "user-pid": [f"{pid}"]}
    return ["why", "--json", *what.get(ask, [])]


# -- the verdict


def judged(
    situation: Situation, ask: str, answered: Answered, effect: Effect, bench: Bench,
    known: Collection[str],
) -> Outcome:  # fmt: skip
    """The outcome of one question. ``known`` are the names of the disk and those below it."""
    right = situation.right(ask)
    broken = situation.proof(effect)
    if not broken and ask.endswith("pid"):
        broken = _asleep(situation, right, effect)
    why = list(_faults(situation, ask, answered, bench, known))
    words = [word for word, _ in why]
    word = WRONG if WRONG in words else MISSED if words else RIGHT
    texts = tuple(text for _, text in why)
    verdict = Verdict(BROKEN, (broken, *texts)) if broken else Verdict(word, texts)
    said = ReportedFinding(f"{answered.code} {answered.rule}", answered.text)
    return Outcome(f"{situation.name} {ask}", LAB, situation.what, (right,), (said,), verdict,
                   figures(effect), effect.last.seconds)  # fmt: skip


def _faults(
    situation: Situation, ask: str, answered: Answered, bench: Bench, known: Collection[str]
) -> Iterator[tuple[str, str]]:
    """(MISSED or WRONG, why) for each thing that is not as expected."""
    right, text = situation.right(ask), answered.text
    code = f"{answered.code}"
    if code not in [*right]:
        yield MISSED if code == "6" else WRONG, f"exit code {code}"
    about_disks, by_root = not ask.endswith("pid"), ask.startswith("root")
    if code == WAITS and about_disks and not situation.says and not any(
        re.search(rf"\b{name}\b", text) for name in known
    ):  # fmt: skip
        yield WRONG, f"says nothing of {', '.join(known)}"
    for number in re.findall(r"\((\d+)\)[^·\n]* does ", text):
        if not _belongs(int(number), bench.pids[:1] if situation.hog else bench.pids):
            yield WRONG, f"names {number}"
    if re.search(situation.never, text):
        yield WRONG, f"must not say {situation.never}"
    if not about_disks or not by_root or code not in [*right]:
        return
    if not re.search(_filled(situation.hog, bench), text):
        yield MISSED, f"does not name {situation.hog}"
    evidence = "\n".join([text, *answered.document.get("evidence", ())])
    if ask == "root" and not re.search(_filled(situation.says, bench), evidence):
        yield WRONG, f"says nothing of {situation.says}"


def _filled(pattern: str, bench: Bench) -> str:
    other = kernel_name(bench.others[0]) if bench.others else ""
    return pattern.replace("PID", f"{bench.pids[0]}" if bench.pids else "").replace("OTHER", other)


def _belongs(pid: int, leaders: Sequence[int]) -> bool:
    """Whether a process is one of these, or descends from one; true if it has ended."""
    while pid > 1 and pid not in leaders:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])
        except OSError:
            return True
    return pid in leaders


def names(bench: Bench) -> set[str]:
    """The names of the disk in question and of the disks below it."""
    found, waiting = set(), [bench.disk]
    while waiting:
        name = waiting.pop()
        place = Path("/sys/class/block", name)
        found.add(name)
        waiting += [path.name for path in place.glob("slaves/*") if path.name not in found]
        if (place / "partition").exists():
            waiting.append(place.resolve().parent.name)
        for file in (place / "dm/name", place / "loop/backing_file"):
            if file.exists():
                found.add(text := file.read_text().strip().removeprefix("/dev/"))
                if text.startswith("/"):  # a loop device's file
                    waiting.append(_disk_of(text))
                elif file.name == "backing_file":  # or a device
                    waiting.append(text)
    return found


def _disk_of(file: str) -> str:
    number = os.stat(file).st_dev
    return Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve().name


def _asleep(situation: Situation, right: str, effect: Effect) -> str:
    """Why the looks at the process don't show the expected wait: state D, or a wait for
    asynchronous I/O of libaio or io_uring if it should wait for a disk. "" if they do."""
    share = _looks_share(effect, situation.asleep or r"D |read_events|io_cqring_wait")
    if WAITS in right and "0" not in right and share < 0.4:
        return f"the process waits in {100 * share:.0f} % of the looks"
    if situation.asleep and share < 0.4:
        return f"{situation.asleep} in {100 * share:.0f} % of the looks"
    if right in ("0", "06") and not situation.asleep and share > 0.2:
        return f"the process waits in {100 * share:.0f} % of the looks"
    return ""


def _looks_share(effect: Effect, pattern: str) -> float:
    counts = [line.partition(" ") for line in effect.last.after.watched["looks"].splitlines()]
    total = sum(int(count) for count, _, _ in counts)
    found = sum(int(count) for count, _, look in counts if re.search(pattern, look))
    return found / total if total else 0.0


def figures(effect: Effect) -> str:
    """The kernel's counts of the same seconds, as a line of text."""
    span = effect.last
    looks = "; ".join(span.after.watched["looks"].splitlines()[:3])
    waited = [f"{kind} {pressure(effect, kind):.0f} %" for kind in ("io", "memory", "cpu")]
    return (f"disk {span.done / span.seconds:.1f}/s, {span.wait:.2f} ms each, "
            f"{span.in_flight:.2f} in flight, util "
            f"{100 * span.count('busy_ms') / 1e3 / span.seconds:.0f} %; tasks waited for "
            f"{', '.join(waited)}; looks: {looks}")  # fmt: skip


def pressure(effect: Effect, kind: str) -> float:
    """Percentage of the time in which some task waited for ``kind`` (/proc/pressure)."""
    before, after = (
        int(match[1]) if (match := re.search(r"some .*total=(\d+)", text)) else 0
        for text in (state.watched.get(f"/proc/pressure/{kind}", "")
                     for state in (effect.last.before, effect.last.after))
    )  # fmt: skip
    return (after - before) / 1e4 / effect.last.seconds


def _keep(directory: Path, outcome: Outcome, answered: Answered, effect: Effect) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{outcome.name.replace(' ', '-')}.json"
    document = {
        "state": _state_of_the_program(), "verdict": WORDS[outcome.verdict.word],
        "why": outcome.verdict.why,
        "expected": outcome.expected, "figures": outcome.figures, "answer": answered.document,
        "exit_code": answered.code,
        "counters": [_state(state) for state in (effect.last.before, effect.last.after)],
    }  # fmt: skip
    file.write_text(json.dumps(document, indent=1))


@functools.cache
def _state_of_the_program() -> str:
    """The version of the program that answered, from git describe."""
    git = ["git", "-c", "safe.directory=*", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(git, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _state(state: State) -> dict[str, Any]:
    return {"at": state.at, "disk": state.disk, "watched": state.watched}


# -- asking


def import_program() -> None:
    """Import what a question needs, once for all."""
    warm_up()
    # otherwise each probe patches the kernel's code when it begins and ends, which may crash QEMU's
    # threads
    Path("/proc/sys/kernel/bpf_stats_enabled").write_text("1")
    for module in pkgutil.walk_packages([str(ROOT / "iopstui")], "iopstui."):
        if not module.name.startswith(("iopstui.ui", "iopstui.features", "iopstui.__main__")):
            importlib.import_module(module.name)


def _ask(asked: Mapping[str, list[str]], pid: int) -> tuple[dict[str, Answered], Counter[str]]:
    """Ask all at once. Returns the answers, and counts of the states in which looks found the
    process."""
    asking = {ask: _Asking(arguments, ask.startswith("user")) for ask, arguments in asked.items()}
    looks: Counter[str] = Counter()
    while open_pipes := [one.pipe for one in asking.values() if not one.ended]:
        looks.update([", ".join(sorted({*_look(pid)}))])
        readable, _, _ = select.select(open_pipes, [], [], LOOK_S)
        for one in asking.values():
            if one.pipe in readable:
                one.read()
    return {ask: one.answered() for ask, one in asking.items()}, looks


class _Asking:
    """A fork of this process that runs the program."""

    def __init__(self, arguments: list[str], as_user: bool) -> None:
        self.pipe, theirs = os.pipe()
        self.ended = False
        self._output = b""
        self._pid = os.fork()
        if not self._pid:
            code = 70
            try:
                code = _program(arguments, as_user, theirs)
            finally:
                os._exit(code)
        os.close(theirs)

    def read(self) -> None:
        part = os.read(self.pipe, 1 << 16)
        self._output += part
        self.ended = not part

    def answered(self) -> Answered:
        os.close(self.pipe)
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        text = self._output.decode()
        if not text.startswith("{"):
            return Answered(code, {"sentences": [text]})
        return Answered(code, json.loads(text))


def _program(arguments: list[str], as_user: bool, output: int) -> int:
    from iopstui.cli.program import main

    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    if ERRORS not in os.environ:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.environ |= {"HOME": "/nonexistent", "XDG_STATE_HOME": "/nonexistent"}
    if as_user:
        os.setgroups([])
        os.setgid(ASKER)
        os.setuid(ASKER)
        # without it, /proc shows the process as root's, unlike an ordinary program's
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    code = main(arguments)
    sys.stdout.flush()
    return code


def _look(pid: int) -> Iterator[str]:
    """Yield text such as "D folio_wait_bit_common" for each thread of a process."""
    for place in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            state = (place / "stat").read_text().rpartition(") ")[2][:1]
            yield f"{state} {(place / 'wchan').read_text()}"


# -- load


def start(
    line: str, user: int = 0, outside: bool = False, ends: bool = False, on: Recipe | None = None
) -> Beside:
    """A shell command that runs until the situation ends (``ends``: until it ends itself, and the
    situation waits for that). $NODE is the block device, or a further one made by ``on``; $PLACE is
    the directory on it. The command enters the bench's cgroups, unless ``outside``."""

    def begin(bench: Bench) -> None:
        node = bench.node
        if on is not None:
            bench.others.append(on(bench))
            bench.node, node = node, bench.node
        files = "" if outside else " ".join(f"{group}/cgroup.procs" for group in bench.groups)
        enter = f"for file in {files}; do echo $$ > $file; done; " if files else ""
        become = f"setpriv --reuid {user} --regid {user} --clear-groups " if user else ""
        if user:
            os.chmod(node, 0o666)
        error = None if ERRORS in os.environ else subprocess.DEVNULL
        process = subprocess.Popen(
            ["sh", "-c", f'{enter}exec {become}sh -c "$LINE"'], start_new_session=True,
            cwd=bench.here, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=error,
            env={**os.environ, "LINE": line, "NODE": node, "PLACE": bench.path},
        )  # fmt: skip
        bench.pids.append(process.pid)
        if ends:
            process.wait(60)
        bench.stack.callback(_end, process)

    return begin


def _end(process: subprocess.Popen[bytes]) -> None:
    # each of fio's jobs leads a session of its own, so a signal to fio's group misses them; fio
    # ends them
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)
    end_group(process)


def fio(
    options: str = "", where: str = "--filename=$NODE --thread", name: str = "hog", **how: Any
) -> Beside:
    """fio's direct random reads of 4 KiB until the situation ends, unless ``options`` say
    otherwise; in threads of one process on the block device."""
    return start(f"exec fio --name={name} --ioengine=libaio --direct=1 --rw=randread --bs=4k "
                 f"--time_based --runtime=300 {where} {options}", **how)  # fmt: skip


def child(bench: Bench) -> int:
    """The process number of the program's first child."""
    text = Path(f"/proc/{bench.pids[0]}/task/{bench.pids[0]}/children").read_text()
    return int(text.split()[0])
