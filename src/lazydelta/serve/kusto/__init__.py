"""Kusto over HTTP: its clients query served tables in KQL, unchanged."""

from lazydelta.serve.kusto.routes import KustoApi

__all__ = ["KustoApi"]
