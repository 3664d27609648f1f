"""Are the program's outputs unchanged, byte for byte? `make golden`.

Help, registries, recordings of several versions in every format, and fio's own documents as
reports. Small outputs are stored in tests/golden/outputs, large ones as digests. `--update` stores
the present outputs; `--against COMMIT` compares with that commit's outputs, and also shows the
differences of large ones."""

from __future__ import annotations

import argparse
import difflib
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

HERE = Path(__file__).parent
TOP = HERE.parents[1]
FIXTURES = Path("tests/fixtures")
OUTPUTS, DIGESTS = HERE / "outputs", HERE / "digests.txt"
LARGE = 8_000
"""Bytes; longer outputs are stored as digests."""
FORMATS = ("table", "csv", "jsonl", "influx")
REPORTS = ("md", "csv", "json", "html")
DIFFERENT_LINES = 12


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns exit code 1 if an output differs."""
    options = _parser().parse_args(arguments)
    outputs = _outputs(TOP, options.only)
    if options.update:
        _keep(outputs, options.only)
        return 0
    if options.against:
        with tempfile.TemporaryDirectory(prefix="iopstui-golden-") as name:
            _check_out(options.against, Path(name))
            differing = dict(_differences(outputs, _outputs(Path(name), options.only)))
    else:
        differing = dict(_differences(outputs, _kept(options.only)))
    for name, text in differing.items():
        print(f"{name}: {text}")
    print(f"{len(outputs)} outputs, {len(differing)} differ")
    return int(bool(differing))


def _outputs(top: Path, only: str) -> dict[str, bytes]:
    """The outputs of the program in this source tree, by the name of the case."""
    with tempfile.TemporaryDirectory(prefix="iopstui-golden-") as name:
        place = Path(name)
        cases = {case: words for case, words in _cases(top, place) if only in case}
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            results = pool.map(lambda words: _output(top, place, words), cases.values())
            return dict(zip(cases, results, strict=True))


def _cases(top: Path, place: Path) -> Iterator[tuple[str, list[str]]]:
    """Each case's name and command line; its input is written into ``place``."""
    yield "help", ["--help"]
    own = (top / "iopstui").glob("cli/commands/[a-z]*.py")
    of_features = (top / "iopstui").glob("features/*/command_*.py")
    for command in sorted(file.stem.removeprefix("command_") for file in (*own, *of_features)):
        yield f"help-{command}", [command, "--help"]
    for form in ("table", "json", "schema"):
        yield f"fields-{form}", ["fields", "--format", form]
    for name in ("jobs", "volumes", "lesson"):
        yield name, [name]
    for file in sorted((top / "jobs").glob("*.fio")):
        yield f"job-{file.stem}", ["jobs", file.stem]
    recordings = [*sorted((TOP / FIXTURES / "recordings").glob("*.iops"))]
    for recording in recordings:
        shutil.copy(recording, place)
        for form in FORMATS:
            yield f"{recording.stem}-{form}", ["replay", recording.name, "--format", form]
        yield f"{recording.stem}-plain", ["replay", recording.name, "--plain"]
        for form in REPORTS:
            yield f"{recording.stem}-report-{form}", ["report", recording.name, "--format", form]
        yield f"{recording.stem}-redacted", ["report", recording.name, "--redact"]
    yield "two-report", ["report", "run.iops", "busy.iops"]
    yield "two-csv", ["report", "run.iops", "busy.iops", "--format", "csv"]
    yield "against", ["report", "run.iops", "--against", "aws/gp3,size=500g"]
    for folder in ("fio", "seconds"):
        for document in sorted((TOP / FIXTURES / folder).glob("*.json.gz")):
            name = f"{folder}-{document.name.removesuffix('.json.gz')}"
            (place / f"{name}.json").write_bytes(gzip.decompress(document.read_bytes()))
            for form in ("md", "json"):
                yield f"{name}-{form}", ["report", f"{name}.json", "--format", form]


def _output(top: Path, place: Path, words: Sequence[str]) -> bytes:
    """Standard output, then errors and the exit code."""
    home = str(place / "home")
    environment = {
        "PATH": os.environ["PATH"], "PYTHONPATH": str(top), "HOME": home, "COLUMNS": "80",
        "XDG_CONFIG_HOME": home, "XDG_STATE_HOME": home, "TZ": "UTC", "LC_ALL": "C.UTF-8",
        "TERM": "dumb", "NO_COLOR": "1", "PYTHONSAFEPATH": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "iopstui", *words]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, check=False,
                          stdin=subprocess.DEVNULL)  # fmt: skip
    output = done.stdout + done.stderr + f"exit code {done.returncode}\n".encode()
    return output.replace(str(place).encode(), b"HERE")


def _keep(outputs: dict[str, bytes], only: str) -> None:
    """Store these outputs; of the earlier ones, keep those whose names don't have ``only``."""
    others = {name: kept for name, kept in _kept("").items() if only not in name}
    shutil.rmtree(OUTPUTS, ignore_errors=True)
    OUTPUTS.mkdir()
    digests = {name: kept for name, kept in others.items() if isinstance(kept, str)}
    for name, output in {**others, **outputs}.items():
        if isinstance(output, bytes) and len(output) <= LARGE:
            (OUTPUTS / name).write_bytes(output)
        elif isinstance(output, bytes):
            digests[name] = _digest(output)
    DIGESTS.write_text("".join(f"{digest} {name}\n" for name, digest in sorted(digests.items())))


def _kept(only: str) -> dict[str, bytes | str]:
    """The stored outputs, or their digests."""
    kept: dict[str, bytes | str] = {
        file.name: file.read_bytes() for file in OUTPUTS.iterdir() if only in file.name
    }
    for line in DIGESTS.read_text().splitlines():
        digest, name = line.split()
        if only in name:
            kept[name] = digest
    return kept


def _digest(output: bytes) -> str:
    return hashlib.sha256(output).hexdigest()[:24]


def _differences(
    now: dict[str, bytes], before: dict[str, bytes] | dict[str, bytes | str]
) -> Iterator[tuple[str, str]]:
    for name in sorted({*now, *before}):
        one, other = now.get(name), before.get(name)
        if one is None or other is None:
            yield name, "new" if other is None else "gone"
        elif isinstance(other, str):
            if _digest(one) != other:
                yield name, f"{len(one)} bytes differ (see --against COMMIT)"
        elif one != other:
            lines = difflib.unified_diff(
                *(text.decode(errors="replace").splitlines() for text in (other, one)),
                "before", "now", lineterm="", n=0,
            )  # fmt: skip
            yield name, "\n".join(line[:300] for line in islice(lines, DIFFERENT_LINES))


def _check_out(commit: str, place: Path) -> None:
    archive = subprocess.run(
        ["git", "archive", commit, "iopstui", "jobs", "lessons", "volumes", "pyproject.toml"],
        cwd=TOP, check=True, capture_output=True,
    )  # fmt: skip
    subprocess.run(["tar", "-x", "-C", str(place)], input=archive.stdout, check=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make golden", description=__doc__)
    parser.add_argument("--update", action="store_true", help="keep what the program says now")
    parser.add_argument("--against", metavar="COMMIT", help="compare with that commit's program")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases with this in their name")
    return parser


if __name__ == "__main__":
    sys.exit(main())
