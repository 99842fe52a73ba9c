"""What one server process holds: tables, clients, limits, tickets; the protocols are rooms over it.

Contract: `reload` takes another configuration whole or not at all; what runs goes on with what it has. Ports,
TLS and the signing key are of the start.
"""

from __future__ import annotations

import secrets

from lazydelta.memory_budget import PROCESS_MEMORY
from lazydelta.serve.admission import Admission
from lazydelta.serve.catalog import Catalog
from lazydelta.serve.client_memory import ClientMemory
from lazydelta.serve.config import ServeConfig
from lazydelta.serve.metrics import ServeMetrics
from lazydelta.serve.scans import Scans
from lazydelta.serve.sign_in import SignIn
from lazydelta.serve.statement_memory import StatementMemory
from lazydelta.serve.tickets import TicketOffice

_KEY_BYTES = 32


class Served:
    """The core that all protocols share."""

    def __init__(self, config: ServeConfig) -> None:
        self.config = config
        self.sign_in = SignIn(config.clients)
        self.catalog = Catalog(config.tables.values())
        self.admission = Admission(config.limits)
        self.metrics = ServeMetrics()
        self.memory = ClientMemory(config.limits.memory_bytes_per_client)
        self.statement_memory = StatementMemory()
        self.scans = Scans(self.catalog, self.admission, self.memory)
        key = config.signing_key or secrets.token_bytes(_KEY_BYTES)
        self.sharing_key = key  # its own first words keep what it signs apart from tickets
        self.tickets = TicketOffice(key, valid_seconds=config.server.ticket_seconds)
        self._memory_bytes = PROCESS_MEMORY.limit_bytes  # where the configuration says nothing
        self._limit_memory()

    def reload(self, config: ServeConfig) -> None:
        """Serve by this configuration from now on."""
        self.config = config
        self.sign_in = SignIn(config.clients)
        self.catalog.replace(config.tables.values())
        self.admission.limit_to(config.limits)
        self._limit_memory()

    def _limit_memory(self) -> None:
        PROCESS_MEMORY.limit_to(self.config.limits.memory_bytes or self._memory_bytes)
        self.memory.limit_to(self.config.limits.memory_bytes_per_client)
