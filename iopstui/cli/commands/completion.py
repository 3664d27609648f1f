"""`iopstui completion`: print the completion script for a shell."""

from __future__ import annotations

import argparse

from iopstui.cli.command import Command
from iopstui.cli.terminal import show
from iopstui.errors import EXIT_OK

SHELLS = ("bash", "zsh", "fish")
COMPLETE_WORDS = "words"
"""The argument that the completion scripts pass. They write the words so far to standard input, one
a line."""
EPILOG = """\
bash: put this into ~/.bashrc                 eval "$(iopstui completion bash)"
zsh: into ~/.zshrc, after compinit            eval "$(iopstui completion zsh)"
fish: into ~/.config/fish/config.fish         iopstui completion fish | source

If iopstui was installed as a package, the shell finds the script by itself.
"""


class _Shells(tuple[str, ...]):
    """Shells that completion supports; other names are accepted, too."""

    __slots__ = ()

    def __contains__(self, shell: object) -> bool:
        return shell == COMPLETE_WORDS or super().__contains__(shell)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=_Shells(SHELLS), metavar="SHELL",
                        help="bash, zsh or fish")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    if arguments.shell != COMPLETE_WORDS:
        from importlib.resources import files

        script = files("iopstui") / "data" / "completion" / f"iopstui.{arguments.shell}"
        show(script.read_text("utf-8"))
        return EXIT_OK
    import sys

    from iopstui.cli.complete import complete
    from iopstui.text import printable

    words = sys.stdin.read().removesuffix("\n").split("\n")
    for word, meaning in complete(words, arguments.line):
        show(f"{printable(word)}\t{printable(meaning)}" if meaning else printable(word))
    return EXIT_OK


COMMAND = Command(
    "completion",
    107,
    "print the completion script for bash, zsh or fish",
    add_arguments,
    run,
    epilog=EPILOG,
    without_directory=True,
    minor=True,
)
