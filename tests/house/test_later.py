"""Modules of the standard library that are read when something of them is first asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from iopstui.ui import start


def said(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


BEGIN = "import sys; from iopstui.later import load_later; load_later('inspect', 'ipaddress'); "


def test_who_imports_it_reads_nothing() -> None:
    code = BEGIN + "import dataclasses, inspect, pathlib; print('dis' in sys.modules)"
    assert said(code) == "False"


def test_what_is_asked_of_it_is_there() -> None:
    code = BEGIN + (
        "import dataclasses, inspect; first = inspect; "
        "print(inspect.signature(len), inspect.isclass(int), end=' '); "
        "import inspect; print(inspect is not first, inspect.unwrap is first.unwrap)"
    )
    assert said(code) == "(obj, /) True True True"


def test_from_it_can_be_imported_as_ever() -> None:
    code = BEGIN + "from inspect import isclass; from ipaddress import ip_address as ip; "
    assert said(code + "print(isclass(int), ip('::1').version)") == "True 6"


def test_what_it_does_not_have_is_an_attribute_error() -> None:
    code = BEGIN + "import inspect; print(hasattr(inspect, 'no_such_thing'))"
    assert said(code) == "False"


def test_what_is_loaded_stays() -> None:
    assert said("import inspect, sys; before = inspect; " + BEGIN
                + "print(sys.modules['inspect'] is before)") == "True"  # fmt: skip


RUN = "import sys; from iopstui.later import load_what_runs_need_later as later; later(); "


def test_a_run_reads_none_of_what_it_does_not_need() -> None:
    code = RUN + (
        "import iopstui.cli.program as p, iopstui.cli.runs.one_run, iopstui.session.runs; "
        "p.parser('run').format_help(); "
        "print([n for n in ('bz2', 'inspect', 'ipaddress', 'locale', 'lzma', 'ntpath', "
        "'gettext', 'urllib.parse') if n in sys.modules and sys.modules[n].__spec__], "
        "'shutil' in sys.modules)"
    )
    # to colour a help Python 3.14 needs it
    coloured = ["inspect"] if sys.version_info >= (3, 14) else []
    assert said(code) == f"{coloured} False"


def test_argparse_says_what_it_always_said() -> None:
    code = (
        "import argparse; p = argparse.ArgumentParser('x'); p.add_argument('-n', nargs=2); "
        "p.exit = lambda code, text: print(text); "
        "print(p.format_help()); p.parse_args(['-n', '1'])"
    )
    assert said(RUN + code) == said(code) != ""


def test_addresses_of_files_are_quoted_as_ever() -> None:
    code = "import pathlib; print(pathlib.Path('/a b/%').as_uri()); import urllib.parse; "
    whole = "print(urllib.parse.urlsplit('http://[::1]:80/x').port, urllib.parse.quote('ä b')); "
    once = "print(urllib.parse.quote_from_bytes(b'a b'))"
    assert said(RUN + code + whole + once) == "file:///a%20b/%25\n80 %C3%A4%20b\na%20b"


def test_windows_paths_are_there() -> None:
    code = "import pathlib; print(pathlib.PureWindowsPath('c:/a') / 'b', end=' '); import gettext; "
    assert said(RUN + code + "print(gettext.NullTranslations().gettext('x'))") == "c:\\a\\b x"


def test_shutil_knows_bz2_and_lzma_and_they_work() -> None:
    code = RUN + (
        "import shutil; print(sys.modules['bz2'].__spec__, len(shutil.get_archive_formats()), "
        "end=' '); import bz2, lzma; "
        "print(bz2.decompress(bz2.compress(b'a')), lzma.decompress(lzma.compress(b'b')))"
    )
    formats = said("import shutil; print(len(shutil.get_archive_formats()))")
    assert said(code) == f"None {formats} b'a' b'b'"


WITHOUT = "import sys; from iopstui.later import load_without; load_without('asyncio', 'ssl'); "


def test_the_screen_is_loaded_without_tls() -> None:
    code = WITHOUT + (
        "import iopstui.ui.app, iopstui.ui.dashboard.screen; print('ssl' in sys.modules, end=' '); "
        "import asyncio; print(asyncio.run(asyncio.sleep(0, 'works')), end=' '); "
        "import ssl; print(ssl.create_default_context().check_hostname)"
    )
    assert said(code) == "False works True"


def test_what_is_loaded_already_keeps_its_tls() -> None:
    code = "import ssl; " + WITHOUT + "import asyncio.sslproto as p; print(p.ssl is ssl)"
    assert said(code) == "True"


def test_a_module_that_can_not_do_without_is_an_error_that_leaves_nothing() -> None:
    code = "import sys; from iopstui.later import load_without\n" + (
        "try: load_without('bz2', '_bz2')\n"
        "except ImportError as e: print(e.name, '_bz2' in sys.modules, 'bz2' in sys.modules)"
    )
    assert said(code) == "_bz2 False False"


def test_a_screen_is_begun_without_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    class Begun(Exception):
        pass

    def begun(name: str, absent: str) -> None:
        raise Begun(name, absent)

    monkeypatch.setattr(start, "load_without", begun)
    with pytest.raises(Begun, match=r"\('asyncio', 'ssl'\)"):
        start._Sessions.show(object.__new__(start._Sessions), None, theme="dark")
