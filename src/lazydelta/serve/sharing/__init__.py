"""Delta Sharing: the open protocol over HTTP, a thin room over the same lazy scans."""

from lazydelta.serve.sharing.routes import PREFIX, sharing_routes

__all__ = ["PREFIX", "sharing_routes"]
