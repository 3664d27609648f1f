"""An application of Textual with nothing in it: the least that a screen of its takes to begin."""

from __future__ import annotations

from textual.app import App

if __name__ == "__main__":
    App().run(mouse=False)
