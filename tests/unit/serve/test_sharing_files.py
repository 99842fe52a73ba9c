"""Links to files: what they open, for whom, how long; ranges and conditions as HTTP has them."""

from __future__ import annotations

import hashlib
import json
import ssl
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec
import pytest

import lazydelta as ld
from lazydelta.serve.link_office import FileLink, LinkOffice
from lazydelta.serve.refusals import ForbiddenError
from lazydelta.serve.sealed_text import bytes_of, text_of
from tests.support import actions
from tests.support.row_tables import readings_table
from tests.support.secure_stores import make_certificate
from tests.support.serving import RunningServer, running_server
from tests.support.shared_tables import mapped_table
from tests.support.sharing import Answer, Sharing, as_delta, table_path
from tests.support.table_builder import TableBuilder

KEY = "k" * 32


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return readings_table(tmp_path_factory.mktemp("served"), hours=2)


@pytest.fixture(scope="module")
def server(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("config")
    with running_server(folder, {"readings": url, "mapped": mapped_table(folder)}) as running:
        yield running


@pytest.fixture
def client(server: RunningServer) -> Sharing:
    return Sharing(server)


@pytest.fixture
def link(client: Sharing) -> str:
    return str(client.query("readings").files[0]["url"])


@pytest.fixture
def body(client: Sharing, link: str) -> bytes:
    return client.ask("GET", link).body


def changed(link: str, **parameters: str) -> str:
    """The link with other parameters."""
    place = urlsplit(link)
    asked = {name: values[0] for name, values in parse_qs(place.query).items()} | parameters
    return place._replace(query=urlencode(asked)).geturl()


def test_a_link_gives_the_bytes_of_its_file(client: Sharing, url: str) -> None:
    stored = sorted((Path(url) / file.path).read_bytes() for file in ld.open(url).scan().files())
    files = client.query("readings").files
    assert sorted(client.ask("GET", file["url"]).body for file in files) == stored
    for file in files:
        assert client.ask("GET", file["url"]).headers["content-length"] == str(file["size"])


def test_head_tells_what_get_would(client: Sharing, link: str, body: bytes) -> None:
    head, get = client.ask("HEAD", link), client.ask("GET", link)
    assert (head.status, head.body) == (200, b"")
    assert {name: head.headers[name] for name in ("content-length", "etag", "accept-ranges")} == {
        name: get.headers[name] for name in ("content-length", "etag", "accept-ranges")
    }
    assert head.headers["content-length"] == str(len(body))


@pytest.mark.parametrize(
    "asked, first, last",
    [
        ("0-9", 0, 9),
        ("5-5", 5, 5),
        ("100-", 100, None),
        ("-7", -7, None),
        ("0-999999999", 0, None),
        (f"{5:030}-{10**25}", 5, None),
    ],
)
def test_a_range_is_a_part(client: Sharing, link: str, asked: str, first: int, last: int | None) -> None:
    body = client.ask("GET", link).body
    answer = client.ask("GET", link, headers={"Range": f"bytes={asked}"})
    wanted = body[first:] if last is None else body[first : last + 1]
    assert (answer.status, answer.body) == (206, wanted)
    start = first % len(body)
    assert answer.headers["content-range"] == f"bytes {start}-{start + len(wanted) - 1}/{len(body)}"
    assert answer.headers["content-length"] == str(len(wanted))
    head = client.ask("HEAD", link, headers={"Range": f"bytes={asked}"})
    assert (head.status, head.headers["content-range"]) == (206, answer.headers["content-range"])


@pytest.mark.parametrize(
    "asked",
    ["bytes=999999-", "bytes=-0", "bytes=999999-1000000", f"bytes={10**25}-", f"bytes={10**25}-{'9' * 5000}"],
)
def test_a_range_behind_the_end_is_none(client: Sharing, link: str, body: bytes, asked: str) -> None:
    answer = client.ask("GET", link, headers={"Range": asked})
    assert (answer.status, answer.headers["content-range"]) == (416, f"bytes */{len(body)}")


@pytest.mark.parametrize(
    "asked",
    ["bytes=5-2", "bytes=-", "bytes=a-b", "rows=0-9", "bytes=0-1,3-4", "", "bytes=1-2-3", "bytes=٣-٤"],
)
def test_a_range_that_is_none_is_passed_over(client: Sharing, link: str, body: bytes, asked: str) -> None:
    answer = client.ask("GET", link, headers={"Range": asked.encode().decode("latin-1")})
    assert (answer.status, answer.body) == (200, body)


def test_conditions_go_by_the_tag(client: Sharing, link: str, body: bytes) -> None:
    tag = client.ask("HEAD", link).headers["etag"]
    asked = {"Range": "bytes=0-3"}

    def status(**headers: str) -> tuple[int, int]:
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = client.ask("GET", link, headers=asked | told)
        return answer.status, len(answer.body)

    assert status(If_Match=tag) == (206, 4)
    assert status(If_Match="*") == (206, 4)
    assert status(If_Match=f'"other", {tag}') == (206, 4)
    assert status(If_Match='"other"') == (412, 0)
    assert status(If_None_Match=tag) == (304, 0)
    assert status(If_None_Match='"other"') == (206, 4)
    assert status(If_Range=tag) == (206, 4)
    assert status(If_Range='"other"') == (200, len(body))
    other = client.query("readings").files[1]["url"]
    assert client.ask("HEAD", other).headers["etag"] != tag


def test_a_file_whose_size_the_log_does_not_tell_comes_too(client: Sharing) -> None:
    answer = client.query("mapped", as_delta("deletionvectors", "columnmapping"))
    vector = answer.files[0]["deltaSingleAction"]["add"]["deletionVector"]
    whole = client.ask("GET", vector["pathOrInlineDv"])
    assert whole.status == 200
    part = client.ask("GET", vector["pathOrInlineDv"], headers={"Range": "bytes=1-8"})
    assert (part.status, part.body, part.headers["content-range"]) == (206, whole.body[1:9], "bytes 1-8/*")
    assert client.ask("GET", vector["pathOrInlineDv"], headers={"Range": "bytes=-4"}).body == whole.body
    assert client.ask("HEAD", vector["pathOrInlineDv"]).status == 200


def refused(answer: Answer) -> str:
    assert answer.status == 403, (answer.status, answer.body)
    return str(answer.json["error"]["message"])


def test_an_altered_link_opens_nothing(client: Sharing, link: str) -> None:
    place = urlsplit(link)
    payload = place.path.removeprefix("/files/")
    raw = bytes_of(payload)
    assert raw is not None
    signature = parse_qs(place.query)["sig"][0]
    attempts = [
        changed(link, sig=signature[:-1] + ("A" if signature[-1] != "A" else "B")),
        changed(link, sig=""),
        changed(link, se=str(int(time.time()) + 10_000_000)),
        changed(link, sp="rw"),
        changed(link, se="-1"),
        changed(link, se="1e9"),
        changed(link, se="9" * 400),
        place._replace(query="").geturl(),
        place._replace(path=f"/files/{text_of(raw.replace(b'part-', b'../..'))}").geturl(),
        place._replace(path=f"/files/{payload}=").geturl(),
        place._replace(path=f"/files/{payload}/../x").geturl(),
        place._replace(path="/files/" + "A" * 20_000).geturl(),
    ]
    for attempt in attempts:
        assert (
            refused(client.ask("GET", attempt))
            == "the link cannot be used: it was altered, or another server wrote it"
        )


def test_a_client_does_not_say_how_links_begin(client: Sharing, link: str) -> None:
    path = f"/delta-sharing{table_path('readings')}/query"
    told = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "1.2.3.4", "X-Forwarded-Host": "elsewhere"}
    found = client.ask("POST", path, b"{}", headers=told).files[0]["url"]
    assert urlsplit(found)[:2] == urlsplit(link)[:2]


def test_nothing_is_listed(client: Sharing) -> None:
    for path in ("/files/", "/files/readings", "/files/readings/_delta_log/"):
        assert client.ask("GET", path).status in (403, 404)
    assert client.ask("POST", "/files/x").status == 405


def test_an_expired_link_is_refused(url: str, tmp_path: Path) -> None:
    more = f'link_seconds = 1\nsigning_key = "{KEY}"'
    with running_server(tmp_path, {"readings": url}, more) as server:
        client = Sharing(server)
        before = time.time()
        file = client.query("readings").files[0]
        expires_at = file["expirationTimestamp"] / 1000
        assert before < expires_at < time.time() + 2
        time.sleep(max(0.0, expires_at - time.time()) + 1.1)
        assert "expired" in refused(client.ask("GET", file["url"]))


def test_a_link_is_good_at_every_server_with_the_key_and_at_no_other(url: str, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        folder.mkdir()
    more = [f'signing_key = "{KEY}"', f'signing_key = "{KEY}"', f'signing_key = "{KEY}2"']
    with (
        running_server(folders[0], {"readings": url}, more[0]) as first,
        running_server(folders[1], {"readings": url}, more[1]) as second,
        running_server(folders[2], {"readings": url}, more[2]) as third,
    ):
        link = Sharing(first).query("readings").files[0]["url"]
        for server, status in ((first, 200), (second, 200), (third, 403)):
            there = urlsplit(link)._replace(netloc=f"127.0.0.1:{server.ports.http}").geturl()
            assert Sharing(server).ask("GET", there).status == status


def test_a_link_ends_with_the_right_of_its_client(url: str, tmp_path: Path) -> None:
    digest = hashlib.sha256(b"secret").hexdigest()
    clients = f'[[clients]]\nname = "ann"\nroles = ["ops"]\ntoken_sha256 = "{digest}"\n'
    table = f'[tables.readings]\nurl = {json.dumps(url)}\nreaders = ["ops"]\n'
    with running_server(tmp_path, {}, clients + table) as server:
        ann, anyone = Sharing(server, "secret"), Sharing(server)
        link = ann.query("readings").files[0]["url"]
        assert anyone.ask("GET", link).status == 200  # the link is the right
        text = server.path.read_text("utf-8")
        server.path.write_text(text.replace('roles = ["ops"]', 'roles = ["other"]'), "utf-8")
        assert server.process.reload()
        assert anyone.ask("GET", link).status == 404
        server.path.write_text(text.replace('name = "ann"', 'name = "eve"'), "utf-8")
        assert server.process.reload()
        assert "gone" in refused(anyone.ask("GET", link))


def test_a_file_that_is_gone_is_not_found(tmp_path: Path) -> None:
    table = readings_table(tmp_path, hours=1)
    with running_server(tmp_path, {"readings": table}) as server:
        client = Sharing(server)
        link = client.query("readings").files[0]["url"]
        (file,) = ld.open(table).scan().files()
        (Path(table) / file.path).unlink()
        answer = client.ask("GET", link)
        assert answer.status == 404 and str(tmp_path) not in answer.body.decode()


def test_a_file_outside_the_table_is_read_only_where_that_is_allowed(tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere" / "secret.parquet"
    outside.parent.mkdir()
    outside.write_bytes(b"not of this table")
    table = TableBuilder(tmp_path / "t", protocol={"minReaderVersion": 1, "minWriterVersion": 2})
    table.commit(
        adds=[actions.add(outside.as_uri(), size=17), actions.add("../elsewhere/secret.parquet", size=17)]
    )
    options = f'{{"delta.allowed_roots" = "{outside.parent}"}}'
    allowed = f'[tables.allowed]\nurl = "{table.path}"\nstorage_options = {options}\n'
    with running_server(tmp_path, {"strict": str(table.path)}, allowed) as server:
        client = Sharing(server)
        for file in client.query("strict").files:
            answer = client.ask("GET", file["url"])
            assert answer.status >= 400 and b"not of this table" not in answer.body
        found = [client.ask("GET", file["url"]) for file in client.query("allowed").files]
        assert [answer.body for answer in found if answer.status == 200] == [b"not of this table"]


def test_a_public_address_is_the_one_in_links(url: str, tmp_path: Path) -> None:
    more = 'public_url = "https://share.example/lake/"'
    with running_server(tmp_path, {"readings": url}, more) as server:
        assert (
            Sharing(server).query("readings").files[0]["url"].startswith("https://share.example/lake/files/")
        )


def test_over_tls_links_are_of_tls(url: str, tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    more = f'[tls]\ncertificate = "{certificate.file}"\nkey = "{certificate.key_file}"\n'
    with running_server(tmp_path, {"readings": url}, more) as server:
        context = ssl.create_default_context(cadata=certificate.authority)

        def ask(method: str, target: str, body: bytes | None = None) -> bytes:
            address = f"https://127.0.0.1:{server.ports.http}"
            request = urllib.request.Request(address + target.removeprefix(address), body, method=method)
            with urllib.request.urlopen(request, context=context, timeout=60) as answer:
                return bytes(answer.read())

        lines = ask("POST", f"/delta-sharing{table_path('readings')}/query", b"{}").splitlines()
        file = json.loads(lines[-1])["file"]
        assert file["url"].startswith(f"https://127.0.0.1:{server.ports.http}/files/")
        assert len(ask("GET", file["url"])) == file["size"]


def test_the_signature_is_of_everything_that_a_link_says() -> None:
    office = LinkOffice(KEY.encode())
    wanted = FileLink("t", "ann", 1, "p", 5)
    others = [
        ("u", "ann", 1, "p", 5),
        ("t", "bob", 1, "p", 5),
        ("t", "ann", 2, "p", 5),
        ("t", "ann", 1, "q", 5),
    ]
    signed = text_of(msgspec.msgpack.encode(wanted))
    expires_at = int(time.time()) + 100
    asked = parse_qs(office.query(signed, expires_at))
    assert office.read(signed, asked["sp"][0], asked["se"][0], asked["sig"][0]) == wanted
    for other in others:
        payload = text_of(msgspec.msgpack.encode(FileLink(*other)))
        with pytest.raises(ForbiddenError, match="altered"):
            office.read(payload, "r", asked["se"][0], asked["sig"][0])
    with pytest.raises(ForbiddenError, match="altered"):
        office.read(signed, "r", str(expires_at + 1), asked["sig"][0])
