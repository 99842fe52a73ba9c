"""Who asks over HTTP: by the token of a header, or by the certificate of the connection."""

from __future__ import annotations

from starlette.requests import Request

from lazydelta.serve.http.connection import CERTIFICATE_KEY
from lazydelta.serve.served import Served
from lazydelta.serve.sign_in import Client, bearer_token


def client_of(served: Served, request: Request) -> Client:
    """Who asks; raises for who may not."""
    return served.sign_in.client(
        token=bearer_token(request.headers.get("authorization")),
        certificate_name=request.scope.get(CERTIFICATE_KEY),
    )
