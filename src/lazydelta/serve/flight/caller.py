"""Who calls, for every call of Flight: the token of its header, its certificate, the id that it gave it.

Contract: Arrow tells of a client's certificate in the call's context and nowhere else: the first of its
alternative names, or its common name where it has none. That is why the sign-in happens in the call. Who
cannot be anybody by a certificate is refused before, since pyarrow has statuses for every method there.
Drivers that know of users and passwords send a client's name and its token, and are given the token to go on
with, by a handshake; Arrow has none where it tells of certificates.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

import msgspec
from pyarrow import flight

from lazydelta.serve.calls import Call, call
from lazydelta.serve.flight.headers import Headers, texts_of
from lazydelta.serve.flight.status import status_of
from lazydelta.serve.refusals import UnauthenticatedError
from lazydelta.serve.served import Served
from lazydelta.serve.sign_in import Client, SignIn

HEADERS = "headers"  # the name of the middleware


class Asking(msgspec.Struct, frozen=True):
    """A call while it is answered."""

    client: Client
    noted: Call
    is_cancelled: Callable[[], bool]  # whether nobody waits for the answer any more
    message_bytes: int  # of a batch that goes to the client


class HeadersFactory(flight.ServerMiddlewareFactory):  # type: ignore[misc]  # pyarrow has no types
    """Looks at each call."""

    def __init__(self, served: Served) -> None:
        super().__init__()
        self._served = served

    def start_call(self, info: Any, headers: dict[str, list[str | bytes]]) -> Headers:  # Any: pyarrow's
        """Keep them."""
        found = Headers(texts_of(headers))
        try:
            self._check(found)
        except UnauthenticatedError as error:
            with suppress(UnauthenticatedError), self._noted(info, found):
                raise
            problem = status_of(error, str)
        else:
            return found
        raise problem

    def _check(self, found: Headers) -> None:
        sign_in = self._served.sign_in
        if found.token is not None or not sign_in.has_certificates:
            client = sign_in.client(token=found.token)
            if found.user not in (None, client.name) and not sign_in.is_open:
                raise UnauthenticatedError(
                    "the sign-in is wrong",
                    "authorization",
                    "send the client's name, and its token as password",
                )

    def _noted(self, info: Any, found: Headers) -> AbstractContextManager[Call]:  # Any: pyarrow's
        method = flight.FlightMethod(info.method).name.title().replace("_", "")  # DoGet
        return call(self._served.metrics, "flight", method, found.request_id)


def headers_of(context: Any) -> Headers:  # Any: pyarrow's
    """What the call came with."""
    found: Headers = context.get_middleware(HEADERS)
    return found


def client_of(context: Any, sign_in: SignIn) -> Client:  # Any: pyarrow's
    """Who calls; raises for who may not."""
    headers = headers_of(context)
    certificate = context.peer_identity().decode("utf-8", "replace") or None
    return sign_in.client(token=headers.token, certificate_name=certificate)
