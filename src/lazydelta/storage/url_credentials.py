"""A shared access signature in a table's URL, moved to where credentials belong.

Why: portals hand out URLs with `?sv=…&sig=…`. Everything that shows, compares or keeps an address must see it
without them, and everything that tells readers apart must see them.
Contract: called before the URL is used for anything else; calling it again changes nothing. The signature in
the URL wins over other credentials: it was given for this very table.
"""

from __future__ import annotations

import msgspec

from lazydelta.settings import Settings
from lazydelta.storage.address import without_signature
from lazydelta.storage.option_names import SIGNATURE, azure_name

_REPLACED = frozenset({SIGNATURE, "credential_type", "skip_signature"})


def split_credentials(url: str, settings: Settings) -> tuple[str, Settings]:
    """The URL without its signature, and the settings with it."""
    bare, signature = without_signature(url)
    if signature is None:
        return url, settings
    options = settings.storage_options
    kept = {name: value for name, value in options.items() if azure_name(name) not in _REPLACED}
    signed = {**kept, SIGNATURE: signature, "credential_type": SIGNATURE}
    return bare, msgspec.structs.replace(settings, storage_options=signed, credential_provider=None)
