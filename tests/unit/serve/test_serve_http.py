"""HTTP of the server itself: health, numbers and who sees them, ids, certificates, what no route is for."""

from __future__ import annotations

import http.client
import json
import logging
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lazydelta.serve.http import connection as http_connection
from lazydelta.serve.sign_in import token_digest
from tests.support.certificates import Authority, KeyPair
from tests.support.prometheus_text import Family, parsed
from tests.support.row_tables import readings_table
from tests.support.serving import RunningServer, bearer, planned, running_server
from tests.support.sharing import Sharing

CLIENTS = "".join(
    f'[[clients]]\nname = "{name}"\ntoken_sha256 = "{token_digest(name + "-token")}"\nroles = ["{role}"]\n'
    for name, role in (("ann", "analysts"), ("ben", "others"), ("ops", "operators"))
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return readings_table(tmp_path_factory.mktemp("served"), hours=1)


@pytest.fixture(scope="module")
def server(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Anybody may come from anywhere, so that numbers are for who signs in."""
    more = f'host = "0.0.0.0"\n{CLIENTS}[tables.of_ann]\nurl = {json.dumps(url)}\nreaders = ["analysts"]\n'
    with running_server(tmp_path_factory.mktemp("config"), {"readings": url}, more) as running:
        for token, table in (("ann-token", "of_ann"), ("ben-token", "readings")):
            with running.flight() as client:
                info = planned(client, bearer(token), table=table, limit=3)
                client.do_get(info.endpoints[0].ticket, bearer(token)).read_all()
        yield running


def tables_of(families: dict[str, Family]) -> set[str]:
    samples = families["lazydelta_rows_total"].samples
    return {dict(labels)["table"] for _, labels in samples}


def test_numbers_are_shown_to_who_signs_in_and_tables_to_who_may_read_them(server: RunningServer) -> None:
    anyone = Sharing(server).ask("GET", "/metrics")
    assert anyone.status == 401 and anyone.headers["www-authenticate"] == "Bearer"
    assert b"of_ann" not in anyone.body
    ann, ben = (Sharing(server, token).ask("GET", "/metrics") for token in ("ann-token", "ben-token"))
    assert tables_of(parsed(ann.body.decode())) == {"readings", "of_ann"}
    assert tables_of(parsed(ben.body.decode())) == {"readings"}
    assert b"of_ann" not in ben.body


def test_numbers_may_be_for_some_alone(url: str, tmp_path: Path) -> None:
    more = f'metrics_readers = ["operators"]\n{CLIENTS}'
    with running_server(tmp_path, {"readings": url}, more) as server:
        assert Sharing(server).ask("GET", "/metrics").status == 401
        assert Sharing(server, "ann-token").ask("GET", "/metrics").status == 403
        assert Sharing(server, "ops-token").ask("GET", "/metrics").status == 200


def test_the_numbers_count_what_was_asked(url: str, tmp_path: Path) -> None:
    more = "[limits]\nrows = 2\n"
    with running_server(tmp_path, {"readings": url}, more) as server, server.flight() as client:

        def value(name: str, **labels: str) -> float:
            families = parsed(Sharing(server).ask("GET", "/metrics").body.decode())
            key = (name, frozenset(labels.items()))
            return next(one.samples[key] for one in families.values() if key in one.samples)

        ticket = planned(client, table="readings", what="files").endpoints[0].ticket
        assert client.do_get(ticket).read_all().num_rows == 1
        with pytest.raises(Exception, match=r"limits\.rows"):
            client.do_get(planned(client, table="readings").endpoints[0].ticket).read_all()
        asked = {"protocol": "flight", "method": "DoGet"}
        assert value("lazydelta_calls_total", **asked, status="ok") == 1
        assert value("lazydelta_calls_total", **asked, status="LimitReached") == 1
        assert value("lazydelta_call_seconds_count", **asked) == 2
        assert value("lazydelta_limit_refusals_total", limit="rows") == 1
        assert value("lazydelta_rows_total", protocol="flight", table="readings") == 1
        assert value("lazydelta_scans_running") == 0
        assert abs(value("lazydelta_threads") - len(list(Path("/proc/self/task").iterdir()))) < 10
        assert value("lazydelta_ready") == 1
        assert value("delta_lazy_files_emitted_total") > 0
        assert value("process_resident_memory_bytes") > 1 << 20


def test_health_needs_no_sign_in(server: RunningServer) -> None:
    for path in ("/healthz", "/readyz"):
        assert Sharing(server).ask("GET", path).status == 200
        assert Sharing(server).ask("HEAD", path).status == 200
        assert Sharing(server).ask("POST", path).status == 405


def test_every_answer_has_the_id_of_its_request(
    server: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    asker = Sharing(server, "ann-token")
    with caplog.at_level(logging.INFO, "lazydelta.access"):
        named = asker.get("/shares", {"x-request-id": "mine-1"})
        unknown = asker.ask("GET", "/nowhere", headers={"x-request-id": "mine-2"})
        odd = asker.get("/shares", {"x-request-id": 'a"b c'})
        refused = Sharing(server, "wrong").get("/shares", {"x-request-id": "mine-3"})
    assert (named.status, unknown.status, odd.status, refused.status) == (200, 404, 200, 401)
    assert named.headers["x-request-id"] == "mine-1" and unknown.headers["x-request-id"] == "mine-2"
    assert odd.headers["x-request-id"] != 'a"b c'
    noted = {line["id"]: line for line in (json.loads(record.getMessage()) for record in caplog.records)}
    assert (noted["mine-1"]["client"], noted["mine-1"]["status"]) == ("ann", "ok")
    assert (noted["mine-2"]["method"], noted["mine-2"]["status"]) == ("unknown", "404")
    assert noted["mine-3"]["status"] == "Unauthenticated"
    assert odd.headers["x-request-id"] in noted
    assert unknown.json["error"]["message"] == "Not Found"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def mutual(
    authority: Authority, url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    pair = authority.of_server()
    more = f"""
[tls]
certificate = "{pair.certificate}"
key = "{pair.key}"
client_ca = "{authority.file}"
[[clients]]
name = "ann"
certificate = "ann.example"
[[clients]]
name = "tom"
token_sha256 = "{token_digest("tom-token")}"
[tables.of_ann]
url = {json.dumps(url)}
readers = ["ann"]
"""
    with running_server(tmp_path_factory.mktemp("mutual"), {"readings": url}, more) as running:
        yield running


def asked(
    server: RunningServer, authority: Authority, pair: KeyPair | None, path: str, token: str | None = None
) -> tuple[int, bytes]:
    context = ssl.create_default_context(cafile=str(authority.file))
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
    connection = http.client.HTTPSConnection("127.0.0.1", server.ports.http, timeout=60, context=context)
    try:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


OF_ANN = "/delta-sharing/shares/lazydelta/schemas/main/tables/of_ann/metadata"


def test_a_certificate_signs_in_over_http_as_over_flight(mutual: RunningServer, authority: Authority) -> None:
    ann, eve = authority.of_client("ann.example"), authority.of_client("eve.example")
    alternative = authority.of_client("y", alternative="ann.example")
    assert asked(mutual, authority, ann, OF_ANN)[0] == 200
    assert asked(mutual, authority, alternative, OF_ANN)[0] == 200
    renamed = authority.of_client("ann.example", alternative="x")  # in the files of the first one
    for stranger in (eve, renamed):
        status, body = asked(mutual, authority, stranger, OF_ANN)
        assert status == 401 and b"UNAUTHENTICATED" in body
    assert asked(mutual, authority, eve, "/healthz")[0] == 200


def test_a_token_comes_before_a_certificate_over_http(mutual: RunningServer, authority: Authority) -> None:
    ann = authority.of_client("ann.example")
    assert asked(mutual, authority, ann, OF_ANN, "tom-token")[0] == 404
    assert asked(mutual, authority, ann, OF_ANN, "wrong")[0] == 401
    assert asked(mutual, authority, ann, "/delta-sharing/shares", "tom-token")[0] == 200


def test_who_has_no_certificate_or_a_stranger_s_does_not_get_in_over_http(
    mutual: RunningServer, authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path, "stranger").of_client("ann.example")
    for pair in (None, stranger):
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
            asked(mutual, authority, pair, "/healthz")


def held(server: RunningServer, sent: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.ports.http or 0), timeout=60)
    connection.sendall(sent)
    return connection


def test_who_says_nothing_or_half_a_request_is_hung_up_on(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connection, "_HEAD_SECONDS", 2.0)
    whole = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    query = "/delta-sharing/shares/lazydelta/schemas/main/tables/readings/query"
    with running_server(tmp_path, {"readings": url}, "[limits]\nstalled_seconds = 0.5\n") as server:
        for sent in (b"", whole[:20]):
            with held(server, sent) as connection:
                found = b""
                try:
                    while chunk := connection.recv(1 << 16):
                        found += chunk
                except ConnectionError:
                    pass
                assert found == b""
        started = f"POST {query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 9\r\n\r\n{{"
        with held(server, started.encode()) as connection, connection.makefile("rb") as answer:
            assert answer.readline().startswith(b"HTTP/1.1 408")
            assert any(b"limits.stalled_seconds" in line for line in answer)
        with held(server, whole) as connection, connection.makefile("rb") as answers:
            first = [answers.readline() for _ in range(7)]
            time.sleep(3.0)
            connection.sendall(whole)
            again = answers.readline()
            assert first[0] == again == b"HTTP/1.1 200 OK\r\n", "who waits between two may"
