"""Copy the program to hosts that lack this version of iopstui, to run the agent there.

The package's own files (without screen and dependencies) are sent through the connection as a zip
file. On the host, a process unpacks them into a private directory, runs them, and removes them at
the end. If the agent is killed, that process restores what was changed. If that process is killed,
the next one removes its files."""

from __future__ import annotations

import base64
import io
import json
import shlex
import zipfile
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import iopstui
from iopstui import __version__
from iopstui.fio.library import shipped_directory

# folders that the agent does not need; of the features, it needs only OWN
EXCLUDED_NAMES = ("ui", "data", "engines", "report", "page", "screen", "__pycache__")
FEATURES, OWN = "features", "fleet"
MIN_PYTHON = (3, 10)

# this script runs on the host, where nothing of iopstui is there yet; its first argument is the zip
# file's size
BOOT = r"""
import sys
def lacks(what):
    sys.stdout.write('{"event":"lacks","what":"%s"}\n' % what)
    sys.stdout.flush()
    sys.exit(5)
if sys.version_info < LEAST:
    lacks("Python %d.%d (its python3 is %d.%d)" % (LEAST + sys.version_info[:2]))
import io, os, shutil, signal, subprocess, tempfile, zipfile, zlib
def trusted():
    # in a user namespace the real root may be one (private.py)
    known = {0, os.geteuid()}
    try:
        if int(open("/proc/self/uid_map").read().split()[2]) < 0xFFFFFFFF:
            known.add(int(open("/proc/sys/kernel/overflowuid").read()))
    except (OSError, ValueError, IndexError):
        pass
    return known
def is_safe(place):
    path, known = os.path.realpath(place), trusted()
    while True:
        info = os.stat(path)
        if info.st_uid not in known or (info.st_mode & 0o22 and not info.st_mode & 0o1000):
            return False
        if path == "/":
            return True
        path = os.path.dirname(path)
def base():
    for place in (os.environ.get("XDG_RUNTIME_DIR"), "/dev/shm", tempfile.gettempdir()):
        if place and os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK):
            if is_safe(place):
                return os.path.realpath(place)
    lacks("a directory for temporary files that no other user can change")
def sweep(place):
    for name in os.listdir(place):
        path, parts = os.path.join(place, name), name.split("-")
        if name.startswith("iopstui+agent-") and len(parts) == 3 and parts[1].isdigit():
            try:
                mine = os.lstat(path).st_uid == os.getuid()
                if mine and not os.path.exists("/proc/" + parts[1]):
                    shutil.rmtree(path, ignore_errors=True)
            except OSError:
                pass
signal.signal(signal.SIGHUP, signal.SIG_IGN)
# not -m: that looks for modules where the launcher began, which may be anybody's directory
RUN = "import sys; sys.path[0] = sys.argv.pop(1); from iopstui.cli import main; sys.exit(main())"
size = int(sys.argv[1])
sys.stdout.write('{"event":"send"}\n')
sys.stdout.flush()
data = b""
while len(data) < size:
    more = os.read(0, size - len(data))
    if not more:
        sys.exit(1)
    data += more
place = base()
sweep(place)
home = tempfile.mkdtemp(prefix="iopstui+agent-%d-" % os.getpid(), dir=place)
try:
    zipfile.ZipFile(io.BytesIO(zlib.decompress(data))).extractall(home)
    env = dict(os.environ, PYTHONPATH=home, PYTHONDONTWRITEBYTECODE="1")
    child = subprocess.Popen([sys.executable, "-c", RUN, home, "agent"], env=env)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: child.send_signal(number))
    code = child.wait()
    if code < 0:
        # it was killed: what it would have put back is put back now
        subprocess.call([sys.executable, "-c", RUN, home, "doctor"], env=env,
                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL)
finally:
    shutil.rmtree(home, ignore_errors=True)
sys.exit(code if code >= 0 else 128 - code)
"""


def _program_files() -> Iterator[tuple[str, Path]]:
    package = Path(iopstui.__file__).resolve().parent
    for path in sorted(package.rglob("*.py")):
        relative = path.relative_to(package)
        is_of_other = relative.parts[0] == FEATURES and relative.parts[1:-1][:1] not in ((), (OWN,))
        if not is_of_other and not {*relative.parts} & {*EXCLUDED_NAMES}:
            yield f"iopstui/{relative}", path
    for path in sorted(shipped_directory("jobs", "job file").glob("*.fio")):
        yield f"iopstui/jobs/{path.name}", path


@cache
def bundle() -> bytes:
    """The zip file. It is compressed as a whole, which makes it a quarter smaller than compressing
    each file. The same files always give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, path in _program_files():
            file.writestr(zipfile.ZipInfo(name), path.read_bytes())
    return zlib.compress(buffer.getvalue(), 9)


# become root, with sudo if needed (which must not ask for a password here); its error message goes
# into a line of JSON
SUDO = r"""s=; [ "$(id -u)" = 0 ] || s="sudo -n"
no=$({ $s true || echo "it ended with $?"; } 2>&1 | head -n 1 | tr -cd "A-Za-z0-9 .,:_/()-")
[ -z "$no" ] || { printf "{\"event\":\"lacks\",\"what\":\"%s\",\"why\":\"%s\",\"user\":\"%s\"}\n" \
"the right to become root without a password" "$no" "$(id -un)"; exit 5; }"""


@cache
def remote_command(bring: bool, sudo: bool = False) -> str:
    """One line for any shell of a host: run the installed iopstui if it has this version, else the
    copy that will be sent (with ``bring`` always the copy); with ``sudo`` as root."""
    boot = f"LEAST = {MIN_PYTHON}\n{BOOT}"
    encoded = base64.b64encode(boot.encode()).decode()
    python = f"import base64;exec(base64.b64decode('{encoded}'))"
    no_python = json.dumps({"event": "lacks", "what": "python3"})
    root = "$s " if sudo else ""
    installed_test = f'[ "$({root}iopstui --version 2>/dev/null)" = "iopstui {__version__}" ]'
    commands = [SUDO.replace("\\\n", "").replace("\n", "; ")] if sudo else []
    commands += [] if bring else [f"{installed_test} && exec {root}iopstui agent"]
    commands += [
        f"command -v python3 >/dev/null 2>&1 || {{ echo {shlex.quote(no_python)}; exit 5; }}",
        f"exec {root}python3 -I -c {shlex.quote(python)} {len(bundle())}",
    ]
    return f"exec sh -c {shlex.quote('; '.join(commands))}"
