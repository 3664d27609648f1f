"""The program works without each of its features, and does not list what is missing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).parents[2]
PACKAGE = TOP / "iopstui"
FEATURES = sorted(path.parent.name for path in (PACKAGE / "features").glob("*/__init__.py"))
EVERYTHING = """
import importlib, pkgutil
import iopstui
for module in pkgutil.walk_packages(iopstui.__path__, "iopstui."):
    if not module.name.endswith(("__main__", "fence_exec")):
        importlib.import_module(module.name)
"""
LISTED = """
import contextlib, io
from iopstui.cli.program import main
from iopstui.cli.registry import command_names, commands
from iopstui.ui import help, keys
from iopstui.ui.app import IopstuiApp
from iopstui.ui.core.backend import Backend
from iopstui.ui.home import screen
from iopstui.ui.parts.view import WHO_PAGES

def told(*words):
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
    return code, text.getvalue()

async def offered():
    backend = Backend(lambda paths: None, dict, [], conditions=lambda session: (None, None))
    async with IopstuiApp(backend).run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        return sorted(pilot.app.targets._offered_actions())

commands()
texts = (keys.markdown(), help.help_sections(), screen.FIRST_RUN)
listed = {"names": sorted(command_names()), "who": [*map(str, WHO_PAGES)], "help": told("--help"),
          "own": [told(name)[0] for name in own], "actions": asyncio.run(offered()),
          "texts": repr(texts)}
"""
EACH = f"""
import asyncio, importlib, json, os, pkgutil, sys
import iopstui, rich.console, textual.app, textual.widgets
# most of the time, so once for all features; these rings do not look for features
for ring in ("model", "linux", "fio", "safety"):
    folder = importlib.import_module("iopstui." + ring).__path__
    for module in pkgutil.walk_packages(folder, "iopstui." + ring + "."):
        if not module.name.endswith("fence_exec"):
            importlib.import_module(module.name)
for place, own in json.load(sys.stdin):
    if not os.fork():
        os.chdir(place)
        sys.path[0] = place
        iopstui.__path__ = [place + "/iopstui"]
        exec({LISTED!r})
        with open("listed.json", "w") as file:
            json.dump(listed, file)
        os._exit(0)
    os.wait()
"""


def program_without(features: Sequence[str], place: Path) -> Path:
    """A copy of the package, made of links, without the folders of these features."""
    copy = place / "iopstui"
    (copy / "features").mkdir(parents=True)
    for path in PACKAGE.iterdir():
        if path.name not in ("features", "__pycache__"):
            (copy / path.name).symlink_to(path)
    for path in (PACKAGE / "features").iterdir():
        if path.name not in (*features, "__pycache__"):
            (copy / "features" / path.name).symlink_to(path)
    for folder in ("jobs", "lessons", "volumes"):
        (place / folder).symlink_to(TOP / folder)
    return place


def run(place: Path, *words: str, input: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(place), "PYTHONSAFEPATH": "1", "COLUMNS": "80"}
    return subprocess.run([sys.executable, *words], cwd=place, env=environment, text=True,
                          input=input, capture_output=True, check=False)  # fmt: skip


def test_every_module_of_the_core_works_without_features(tmp_path: Path) -> None:
    """import-linter checks that no feature imports another."""
    result = run(program_without(FEATURES, tmp_path), "-c", EVERYTHING)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(("page", "row"), [("docs/architecture.md", "| `{}` |"),
                                         ("CONTRIBUTING.md", "{}")])  # fmt: skip
def test_the_pages_for_developers_list_each_feature(page: str, row: str) -> None:
    text = (TOP / page).read_text()
    features = text.partition(" features/ ")[2].partition(".py")[0] if row == "{}" else text
    assert FEATURES and not [name for name in FEATURES if row.format(name) not in features]


def own_commands(feature: str) -> list[str]:
    files = (PACKAGE / "features" / feature).glob("command_*.py")
    return sorted(path.stem.removeprefix("command_") for path in files)


def test_the_program_works_without_each_feature(tmp_path: Path) -> None:
    """A single test for all features: they share their imports, so it costs as much as a test of
    one."""
    for name in ("none", *FEATURES):
        (tmp_path / name).mkdir()
    program_without(FEATURES, tmp_path / "none")
    asked = [(str(program_without([name], tmp_path / name)), own_commands(name))
             for name in FEATURES]  # fmt: skip
    result = run(tmp_path / "none", "-c", EACH, input=json.dumps(asked))
    assert result.stderr == ""
    for feature in FEATURES:
        listed = json.loads((tmp_path / feature / "listed.json").read_text())
        check_missing_commands(feature, listed)
        check_missing_keys(feature, listed)


def check_missing_commands(feature: str, listed: dict[str, Any]) -> None:
    own = {*own_commands(feature)}
    assert {"live", "run", "why"} <= set(listed["names"]) and not own & set(listed["names"])
    assert ("Workload" in listed["who"]) == (feature != "capture")
    code, help_text = listed["help"]
    assert code == 0 and "live" in help_text.split() and not own & set(help_text.split())
    assert listed["own"] == [2] * len(own)


def check_missing_keys(feature: str, listed: dict[str, Any]) -> None:
    actions, texts = set(listed["actions"]), listed["texts"]
    assert {"watch", "sweep"} <= actions and "read" in texts
    assert ("lessons" in actions) == ("lesson" in texts) == (feature != "lessons")
    assert ("HTML report" in texts) == (feature != "reports")
    assert ("iopstui fleet HOSTS" in texts) == (feature != "fleet")


@pytest.mark.parametrize(
    ("feature", "command", "there", "missing"),
    [("diskspd", "run", "--replay", "--diskspd"), ("exports", "watch", "--interval", "--textfile")],
)
def test_an_option_of_a_missing_feature_is_unknown(
    tmp_path: Path, feature: str, command: str, there: str, missing: str
) -> None:
    place = program_without([feature], tmp_path)
    help_text = run(place, "-m", "iopstui", command, "--help").stdout
    assert there in help_text and missing not in help_text


def test_the_contract_of_the_core_names_all_of_it() -> None:
    text = (TOP / "pyproject.toml").read_text()
    contract = text.partition('name = "The core knows no feature"')[2].partition("]")[0]
    named = set(re.findall(r'"iopstui\.(\w+)"', contract))
    # a folder that was moved leaves its compiled files behind
    present = {path.stem for path in PACKAGE.iterdir() if path.name[0] not in "_."
               and (path.is_file() or any(path.rglob("*.py")) or path.name == "data")}  # fmt: skip
    assert named == present - {"features", "data", "py"}
