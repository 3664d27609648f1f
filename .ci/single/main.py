"""The beginning of the single-file program: a zip archive with iopstui and all it needs.

Its compiled modules, and the programs that iopstui starts from its own files, have to be files, so
the first start of each version puts them into the user's cache. `why` writes nothing: its files are
in memory and gone when it ends. Written for any Python 3: an old one is told what it is.
"""

import atexit
import contextlib
import os
import pwd
import shutil
import stat
import sys
import tempfile
import zipfile

OLDEST = (3, 10)
SITE = "site/"
NAME = "name"
MEMORY = "/dev/shm"


def main():
    """Start the program; the exit code."""
    if sys.version_info < OLDEST:
        sys.stderr.write(
            "iopstui: this is Python {}.{}; iopstui needs 3.10 or newer.\n"
            "  With another one: python3.12 {} ...\n".format(*sys.version_info[:2], sys.argv[0])
        )
        return 5
    writes = sys.argv[1:2] != ["why"]
    sys.dont_write_bytecode = sys.dont_write_bytecode or not writes
    sys.path[0] = unpacked(os.path.abspath(sys.argv[0]), writes)
    from iopstui.cli import main as iopstui

    return iopstui()


def unpacked(program, writes):
    """The directory with everything, where nobody else can change it. Without ``writes`` it is in
    memory, unless an earlier start has left one."""
    with zipfile.ZipFile(program) as archive:
        name = archive.read(NAME).decode("ascii")
        for cache in caches():
            place = os.path.join(cache, "iopstui", name)
            try:
                if writes:
                    os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
                if not safe(os.path.dirname(place)):
                    continue
                if writes and not os.path.isdir(place):
                    extract(archive, place)
                if safe(place):
                    return place
            except OSError:
                continue
        # no home, or one that is full or read-only: for this time only
        memory = None if writes or not os.access(MEMORY, os.W_OK | os.X_OK) else MEMORY
        place = tempfile.mkdtemp(prefix="iopstui-program-", dir=memory)
        atexit.register(shutil.rmtree, place, True)
        members(archive, place)
        return place


def caches():
    """Where a user's caches are; another user's variables (sudo -E) lead nowhere."""
    if os.path.isabs(os.environ.get("XDG_CACHE_HOME", "")):
        yield os.environ["XDG_CACHE_HOME"]
    if os.path.isabs(os.environ.get("HOME", "")):
        yield os.path.join(os.environ["HOME"], ".cache")
    with contextlib.suppress(KeyError):
        yield os.path.join(pwd.getpwuid(os.geteuid()).pw_dir, ".cache")


def safe(place):
    """Whether nobody but root and this user can change what is in it, or what it is."""
    path = os.path.realpath(place)
    while True:
        info = os.stat(path)
        others = info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if info.st_uid not in (0, os.geteuid()) or (others and not info.st_mode & stat.S_ISVTX):
            return False
        if path == "/":
            return os.stat(place).st_uid == os.geteuid()
        path = os.path.dirname(path)


def extract(archive, place):
    """As a whole: a second start at the same time finds all of it or nothing."""
    made = tempfile.mkdtemp(prefix=".new-", dir=os.path.dirname(place))
    try:
        members(archive, made)
        os.rename(made, place)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        if not os.path.isdir(place):
            raise


def members(archive, place):
    """Write the program's files below ``place``."""
    for one in archive.namelist():
        if one.startswith(SITE):
            path = os.path.join(place, one[len(SITE) :])
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            with archive.open(one) as packed, open(path, "wb") as file:
                shutil.copyfileobj(packed, file)


if __name__ == "__main__":
    sys.exit(main())
