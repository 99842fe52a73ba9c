"""Text that may hold a secret, as it may be shown: everything that looks like one is left out.

Why: people paste whole URLs with signatures, keys before an `@`, `name=value` in the place of a path. What an
error, a log or a `repr` says of them ends up in tickets. So errors and logs pass all their text through here.
Contract: pure, in time linear to the text. From where a secret may begin, the rest of the text is hidden: it
is better to say too little. What was redacted stays as it is when it is redacted again. Addresses as
lazydelta itself writes them pass: `abfss://container@account.dfs.core.windows.net/path`, an endpoint with a
port.
"""

from __future__ import annotations

import re

HIDDEN = "…"
# Parameters that are secret, of a query: `sig`, `X-Amz-Signature`, `account_key`, `password`, …
_SECRET = (
    r"(?:[\w.-]*(?:signature|token|secret|password|passwd|credential|accountkey|accesskey|apikey)"
    r"|(?:[\w.-]*[-_.])?(?:sig|sas|key|pwd|pass))"
)
_EQUALS = r"(?:=|%(?:25)*3d)"
_NOT_A_BLANK = rf"(?!\s?[\"']?{HIDDEN})"  # our own texts show what to write: account_key=…
_IN_A_QUERY = re.compile(
    rf"(?:[?&;#]|%(?:25)*(?:3f|26|3b|23)){_SECRET}{_EQUALS}{_NOT_A_BLANK}", re.IGNORECASE
)
# Names that are nothing but options of a store, wherever they stand.
_OPTION = re.compile(
    r"(?<![\w./-])(?:azure_storage_|azure_|aws_)?"
    r"(?:account_?key|access_?key|master_key|secret_access_key|sas_?token|sas_key|session_token"
    r"|security_token|client_secret|bearer_token|shared_?access_?signature|shared_?access_?key"
    r"|connection_string|x-amz-signature|x-amz-security-token|x-amz-credential)"
    rf"[\"']?\s?(?:[=:]|%(?:25)*3d){_NOT_A_BLANK}|(?:\A\s*|[\"'(])sig={_NOT_A_BLANK}",
    re.IGNORECASE,
)
_SLASHES = re.compile(r":[/\\]{1,3}")
_SCHEME_BEFORE = re.compile(r"[A-Za-z0-9+.-]{1,16}\Z")
_AUTHORITY_END = re.compile(r"[/\\\s\"']")
_WITH_CONTAINER = ("abfs", "abfss", "wasb", "wasbs")  # container@account
_WITH_USER = ("http", "https")  # user@host
_PORT = re.compile(r"[^:@]*:[0-9]{1,5}|\[[0-9A-Fa-f:.]*\](?::[0-9]{1,5})?")
_BLANK = re.compile(r"\s")
_TOKEN = re.compile(r"\S+")
_COLON = re.compile(r":(?![/\\])")
_NAME = re.compile(r"[a-z]{1,16}[0-9]?(?:[_.-][a-z]{1,16}[0-9]?)*")
_NAME_CHARS_MAX = 64


def redacted(text: str) -> str:
    """The text up to where a secret may begin."""
    cuts = [at for at in (_in_parameters(text), _in_authorities(text), _before_an_at(text)) if at is not None]
    return text if not cuts else f"{text[: min(cuts)]}{HIDDEN}"


def holds_parameters(text: str) -> bool:
    """Whether parameters that are secret stand in the text, as in `path?sv=…&sig=…`, encoded or not."""
    return _in_parameters(text) is not None


def shown_name(name: str) -> str:
    """An option's name, if it looks like one: what stands before a `=` may be a key that ends with it."""
    is_plain = (name.islower() or name.isupper()) and len(name) <= _NAME_CHARS_MAX
    return name if is_plain and _NAME.fullmatch(name.lower()) else HIDDEN


def _in_parameters(text: str) -> int | None:
    if "=" not in text and ":" not in text and "%" not in text:
        return None
    found = [match.start() for match in (_IN_A_QUERY.search(text), _OPTION.search(text)) if match]
    if not found:
        return None
    query = text.rfind("?", 0, min(found))  # all of it, where it is of the same word
    return min(found) if query < 0 or _BLANK.search(text, query, min(found)) else query


def _in_authorities(text: str) -> int | None:
    """Where the authority of the first URL begins that may hold a user or a password."""
    last_at = text.rfind("@")
    for slashes in _SLASHES.finditer(text):
        end = _AUTHORITY_END.search(text, slashes.end())
        authority = text[slashes.end() : len(text) if end is None else end.start()]
        scheme = _scheme(text, slashes.start())
        if scheme == "file" and len(slashes[0]) != len("://"):
            continue  # no host
        if not _is_plain(authority, scheme, is_before_at=last_at >= slashes.end()):
            return slashes.end()
    return None


def _scheme(text: str, end: int) -> str:
    found = _SCHEME_BEFORE.search(text[max(0, end - 16) : end])
    return "" if found is None else found[0].lower()


def _is_plain(authority: str, scheme: str, *, is_before_at: bool) -> bool:
    if is_before_at and (":" in authority or scheme in _WITH_USER):
        return False  # what follows may be the end of a password
    if ":" in authority or "[" in authority:
        return _PORT.fullmatch(authority) is not None
    return authority.count("@") <= (1 if scheme in _WITH_CONTAINER else 0)


def _before_an_at(text: str) -> int | None:
    """Where a word begins that may be `user:password@host`."""
    if "@" not in text:
        return None
    for token in _TOKEN.finditer(text):
        word = token[0]
        at, colon = word.rfind("@"), _COLON.search(word)
        if colon is not None and colon.start() < at:
            return (
                token.start() + max(word.rfind("/", 0, colon.start()), word.rfind("\\", 0, colon.start())) + 1
            )
    return None
