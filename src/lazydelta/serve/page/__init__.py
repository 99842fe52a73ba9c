"""The web page: a table's versions, files and rows, seen in a browser."""

from lazydelta.serve.page.routes import PageApi

__all__ = ["PageApi"]
