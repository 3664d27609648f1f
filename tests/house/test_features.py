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
import asyncio, json, os, sys
import rich.console, textual.app, textual.widgets  # most of the time: once for all features
for place, own in json.load(sys.stdin):
    if not os.fork():
        os.chdir(place)
        sys.path.insert(0, place)
        exec({LISTED!r})
        with open("listed.json", "w") as file:
            json.dump(listed, file)
        os._exit(0)
    os.wait()
"""


def program_without(features: Sequence[str], place: Path) -> Path:
    """A copy of the package, of links, in which these features' folders are missing."""
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
    """That a feature imports no other, import-linter tells."""
    result = run(program_without(FEATURES, tmp_path), "-c", EVERYTHING)
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the program lists and offers without each feature."""
    places = {name: tmp_path_factory.mktemp(name) for name in FEATURES}
    asked = [(str(program_without([name], place)), own_commands(name))
             for name, place in places.items()]  # fmt: skip
    result = run(tmp_path_factory.mktemp("all"), "-c", EACH, input=json.dumps(asked))
    assert result.stderr == ""
    return {name: json.loads((place / "listed.json").read_text()) for name, place in places.items()}


def own_commands(feature: str) -> list[str]:
    return sorted(path.stem for path in (PACKAGE / "features" / feature).glob("commands/[a-z]*.py"))


@pytest.mark.parametrize("feature", FEATURES)
def test_the_program_works_without_each_feature(
    feature: str, without: dict[str, dict[str, Any]]
) -> None:
    listed, own = without[feature], {*own_commands(feature)}
    assert {"live", "run", "why"} <= set(listed["names"]) and not own & set(listed["names"])
    assert ("Workload" in listed["who"]) == (feature != "capture")
    code, help_text = listed["help"]
    assert code == 0 and "live" in help_text.split() and not own & set(help_text.split())
    assert listed["own"] == [2] * len(own)


@pytest.mark.parametrize("feature", FEATURES)
def test_keys_of_a_missing_feature_are_on_no_screen(
    feature: str, without: dict[str, dict[str, Any]]
) -> None:
    actions, texts = set(without[feature]["actions"]), without[feature]["texts"]
    assert {"watch", "sweep"} <= actions and "read" in texts
    assert ("lessons" in actions) == ("lesson" in texts) == (feature != "lessons")
    assert ("HTML report" in texts) == (feature != "reports")
    assert ("iopstui fleet HOSTS" in texts) == (feature != "fleet")


def test_an_option_of_a_missing_feature_is_unknown(tmp_path: Path) -> None:
    place = program_without(["diskspd"], tmp_path)
    help_text = run(place, "-m", "iopstui", "run", "--help").stdout
    assert "--replay" in help_text and "--diskspd" not in help_text


def test_exports_are_unknown_without_their_feature(tmp_path: Path) -> None:
    place = program_without(["exports"], tmp_path)
    help_text = run(place, "-m", "iopstui", "watch", "--help").stdout
    assert "--interval" in help_text and "--textfile" not in help_text


def test_the_contract_of_the_core_names_all_of_it() -> None:
    text = (TOP / "pyproject.toml").read_text()
    contract = text.partition('name = "The core knows no feature"')[2].partition("]")[0]
    named = set(re.findall(r'"iopstui\.(\w+)"', contract))
    # a folder that was moved leaves its compiled files behind
    present = {path.stem for path in PACKAGE.iterdir() if path.name[0] not in "_."
               and (path.is_file() or any(path.rglob("*.py")) or path.name == "data")}  # fmt: skip
    assert named == present - {"features", "data", "py"}
