"""What keeps other pages out: headers for the browser, and requests that no page of ours would send.

Why: on loopback nobody signs in, and a browser on the same machine also has pages of strangers open.
Contract: a request that the browser says another site made is refused; so is, where nobody has to sign in,
one for a host that is not this machine, which a stranger's name that was turned to this address would send.
Nothing is loaded from elsewhere, no script or style stands in the page itself, and nobody may show it in a
frame.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request

from lazydelta.serve.config import is_loopback
from lazydelta.serve.refusals import ForbiddenError
from lazydelta.serve.served import Served

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_OWN_SITES = (
    None,
    "same-origin",
    "none",
)  # what `sec-fetch-site` says of our own page; None: it says nothing
_JSON = "application/json"


def check_origin(served: Served, request: Request) -> None:
    """Raise for what another page sent."""
    if request.headers.get("sec-fetch-site") not in _OWN_SITES:
        raise _refused("another site sent the request", "open the page by its own address")
    if served.sign_in.is_open and not _is_ours(served, request.headers.get("host", "")):
        raise _refused("the request is for another host", "open the page as 127.0.0.1 or localhost")
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method == "POST" and sent != _JSON:
        raise _refused("the body is not sent as JSON", f"send content-type: {_JSON}")


def _is_ours(served: Served, host: str) -> bool:
    name = urlsplit(f"//{host}").hostname or ""
    public = urlsplit(served.config.server.public_url).hostname
    return is_loopback(name) or name in (served.config.server.host, public)


def _refused(what: str, fix: str) -> ForbiddenError:
    return ForbiddenError(what, "request", fix)
