"""Stores that check who asks, for the tests of this folder."""

from tests.support.checked_s3 import checked_s3
from tests.support.secure_stores import secure_azurite

__all__ = ["checked_s3", "secure_azurite"]
