"""An empty Textual application: the least time that any Textual screen takes to start."""

from __future__ import annotations

from textual.app import App

if __name__ == "__main__":
    App().run(mouse=False)
