"""A profile of the AWS command line, as a session that can be asked for keys.

Why: a session of boto3 holds the keys that stood in the profile's files for as long as it lives. Programs
that sign people in write others there every hour, and a server lives for longer.
Contract: keys out of a file are read anew each time; what a session renews itself (a role, a sign-in) is left
to it.
"""

from __future__ import annotations

from typing import Any

from lazydelta.storage.providers import profile_session


class AwsProfile:
    """What `provider_of` takes of a session of boto3."""

    def __init__(self, profile: str, session: Any) -> None:  # Any: boto3 has no types
        self._profile = profile
        self._session = session
        self._is_static = False
        self.region_name = session.region_name

    def get_credentials(self) -> Any:  # likewise
        """The keys as they are now; None where the profile has none."""
        if self._is_static:
            self._session = profile_session(self._profile)
        found = self._session.get_credentials()
        self._is_static = not hasattr(found, "refresh_needed")  # botocore's mark of those that it renews
        return found


def aws_profile(profile: str) -> AwsProfile | None:
    """The profile ("" for the usual one); None where boto3 is not installed."""
    session = profile_session(profile)
    return None if session is None else AwsProfile(profile, session)
