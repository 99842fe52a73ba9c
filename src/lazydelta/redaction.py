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
_ESCAPE = re.compile(r"%(?:25)*([0-9a-f]{2})", re.IGNORECASE)  # encoded once, or several times
_NOT_A_BLANK = rf"(?!\s?[\"']?{HIDDEN})"  # our own texts show what to write: account_key=…
# Parameters that are secret, of a query: `sig`, `X-Amz-Signature`, `account_key`, `password`, …
_IN_A_QUERY = re.compile(
    r"[?&;#](?:[\w.-]*(?:signature|token|secret|password|passwd|credential|accountkey|accesskey|apikey)"
    rf"|(?:[\w.-]*[-_.])?(?:sig|sas|key|pwd|pass))={_NOT_A_BLANK}",
    re.IGNORECASE,
)
# Names that are hardly anything but options of a store, wherever they stand, as options are written. A column
# may have such a name, too: a number, and a short value in quotes or after a blank, is a filter's, or a type.
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?![\w+/=.-])"
_BARE = rf"(?=[^\s\"'=])(?!{_NUMBER})"
_LONG = r"[^\s\"']{12}"
# Nothing that a name goes on from; or a character that `repr` has written as an escape.
_ESCAPED = r"(?<=\\[nrt])|(?<=\\x[0-9a-f]{2})|(?<=\\u[0-9a-f]{4})"
_BEFORE = rf"(?:(?<![\w./\\-])|{_ESCAPED})"
_OPTION = re.compile(
    rf"{_BEFORE}(?:azure[-_]storage[-_]|azure[-_]|aws[-_]|delta\.page\.)?"
    r"(?:account[-_]?key|access[-_]?key|master[-_]key|secret[-_]access[-_]key|sas[-_]?token|sas[-_]key"
    r"|(?:fabric[-_])?session[-_]token|security[-_]token|client[-_]secret|shared[-_]?access[-_]?signature"
    r"|(?:bearer|access|refresh|id)[-_]token|encryption[-_]key|(?:sse[-_])?customer[-_]key(?:[-_]base64)?"
    r"|shared[-_]?access[-_]?key|connection[-_]string|signing[-_]key|(?:x-)?api[-_]?key"
    r"|x-amz-signature|x-amz-security-token|x-amz-credential)"
    rf"(?:[\"']\s?[=:]\s?[\"']{_NOT_A_BLANK}|[\"']?[=:]{_NOT_A_BLANK}{_BARE}"
    rf"|[\"']?\s?[=:]{_NOT_A_BLANK}\s?[\"']?{_LONG})",
    re.IGNORECASE,
)
# Words that are names of columns as well: only as `token=…`, and not below a folder, as partitions are.
_WORD = re.compile(
    rf"{_BEFORE}(?:token|password|passwd|pwd|secret|sas|sig|credential)="
    rf"{_NOT_A_BLANK}(?:{_BARE}|[\"']{_LONG})"
    rf"|(?:(?<!\w)|{_ESCAPED})bearer[\s+]+(?!tokens?\b)[\w.~+/=-]{{4}}",
    re.IGNORECASE,
)
# What is one by its form, whatever stands before it: a header of Azure's, a JSON web token.
_FORM = re.compile(r"\bSharedKey(?:Lite)?[\s+]+[a-z0-9]{3,24}:[\w+/=]{4}|\beyJ[\w-]{8,1024}\.eyJ[\w-]{4}")
_PARAMETERS = (_IN_A_QUERY, _OPTION, _WORD, _FORM)
_SLASHES = re.compile(r":[/\\]{1,3}")
_SCHEME_BEFORE = re.compile(r"[A-Za-z0-9+.-]{1,16}\Z")
_AUTHORITY_END = re.compile(r"[/\\\s\"']")
_WITH_CONTAINER = ("abfs", "abfss", "wasb", "wasbs")  # container@account
_WITH_USER = ("http", "https")  # user@host
_PORT = re.compile(r"[^:@]*:[0-9]{1,5}|\[[0-9A-Fa-f:.]*\](?::[0-9]{1,5})?")
_BLANK = re.compile(r"\s")
_TOKEN = re.compile(r"\S+")
_COLON = re.compile(r":(?![/\\])")
_PATH = re.compile(r"[\"'(]*(?:file://)?/(?!/)", re.IGNORECASE)
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
    plain, escapes = _decoded(text)
    found = [match.start() for form in _PARAMETERS if (match := form.search(plain))]
    if not found:
        return None
    at = min(found)
    query = plain.rfind("?", 0, at)  # all of it, where it is of the same word
    at = at if query < 0 or _BLANK.search(plain, query, at) else query
    return at + sum(extra for place, extra in escapes if place < at)


def _decoded(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text without escapes; where in it they were, and how many characters more they had."""
    if "%" not in text:
        return text, []
    pieces, escapes, end, place = [], [], 0, 0
    for escape in _ESCAPE.finditer(text):
        pieces += [text[end : escape.start()], chr(int(escape[1], 16))]
        place += escape.start() - end
        escapes.append((place, len(escape[0]) - 1))
        place, end = place + 1, escape.end()
    return "".join([*pieces, text[end:]]), escapes


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
        if colon is None or colon.start() >= at:
            continue
        if _PATH.match(word) is None:
            before = max(word.rfind("/", 0, colon.start()), word.rfind("\\", 0, colon.start()))
            return token.start() + before + 1
        begin = 0
        for part in word.split("/"):  # of a path each for itself, as in /10:00/me@work
            if -1 < part.find(":") < part.rfind("@"):
                return token.start() + begin
            begin += len(part) + 1
    return None
