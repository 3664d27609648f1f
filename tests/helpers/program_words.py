"""The words that a shell offers to complete a line, from the shell itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "iopstui" / "data" / "completion"
SHELLS = tuple(name for name in ("bash", "zsh", "fish") if shutil.which(name))

BASH = """
compopt() { :; }
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
_iopstui
printf '%s\\n' "${COMPREPLY[@]}"
"""
# without a terminal zsh completes nothing, so functions of ours record what the script offers
ZSH = """
compdef() { :; }
_describe() {
    local name=$2 each
    for each in ${(P)name}; do print -r -- "${${each//\\\\:/$'\\1'}%%:*}"; done
}
_files() { print -rl -- $PREFIX*(N); }
source "$1"
words=(${=2}) CURRENT=${#words} PREFIX=${words[-1]}
_iopstui || :
"""
FISH = 'source $argv[1]; complete -C "$argv[2]"'


def answers(shell: str, line: str, cwd: Path) -> set[str]:
    """The words that this shell offers for the line."""
    program = cwd / "bin" / "iopstui"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m iopstui "$@"\n')
    program.chmod(0o755)
    paths = {"bash": DATA / "iopstui.bash", "zsh": DATA / "iopstui.zsh"}
    script = str(paths.get(shell, DATA / "iopstui.fish"))
    command = {
        "bash": ["bash", "--norc", "-c", BASH, "bash", script, line],
        "zsh": ["zsh", "-f", "-c", ZSH, "zsh", script, line],
        "fish": ["fish", "--no-config", "-c", FISH, script, line],
    }[shell]
    path = f"{program.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=60,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(cwd)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {one.split("\t")[0] for one in done.stdout.splitlines() if one}
