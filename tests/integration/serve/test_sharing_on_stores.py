"""Tables in Azure and S3: links that the store signs, and links that this server answers from the store."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

import lazydelta as ld
from tests.support.proxy import Fault, HttpProxy
from tests.support.row_tables import all_readings, by_id, readings_table
from tests.support.servers import TableServer
from tests.support.serving import running_server
from tests.support.shared_tables import mapped_rows, mapped_table
from tests.support.sharing import Sharing, as_delta, table_path
from tests.support.sharing_peer import sharing_peer

FEATURES = as_delta("deletionvectors", "columnmapping")


def config(store: TableServer, urls: dict[str, str], options: dict[str, str] | None = None) -> str:
    told = json.dumps(options or store.storage_options).replace('": "', '" = "')
    return "".join(
        f"[tables.{name}_{links}]\nurl = {json.dumps(url)}\nfile_links = {json.dumps(links)}\n"
        f"storage_options = {told}\n"
        for name, url in urls.items()
        for links in ("store", "server")
    )


def uploaded(store: TableServer, folder: Path) -> dict[str, str]:
    urls = {"readings": store.url(), "mapped": store.url()}
    store.upload(readings_table(folder, hours=3), urls["readings"])
    store.upload(mapped_table(folder), urls["mapped"])
    return urls


def test_a_client_reads_by_links_of_either_kind(remote_store: TableServer, tmp_path: Path) -> None:
    urls = uploaded(remote_store, tmp_path)
    with (
        running_server(tmp_path, {}, config(remote_store, urls)) as server,
        sharing_peer(tmp_path) as peer,
    ):
        profile = peer.profile(server)
        for links in ("store", "server"):
            address = f"{profile}#lazydelta.main.readings_{links}"
            found = peer.ask(f"rows(delta_sharing.load_as_pandas({address!r}))")
            assert by_id(found) == all_readings(3)
            address = f"{profile}#lazydelta.main.mapped_{links}"
            found = by_id(peer.ask(f"rows(delta_sharing.load_as_pandas({address!r}))"))
            assert [row | {"day": row["day"][:10]} for row in found] == mapped_rows()


def test_a_link_of_the_store_opens_one_file_and_expires(remote_store: TableServer, tmp_path: Path) -> None:
    urls = uploaded(remote_store, tmp_path)
    with running_server(tmp_path, {}, "link_seconds = 900\n" + config(remote_store, urls)) as server:
        client = Sharing(server)
        files = client.query("readings_store").files
        table = ld.open(urls["readings"], storage_options=remote_store.storage_options)
        assert len(files) == 3
        stored = {
            file.size: remote_store.open(urls["readings"]).get(file.path) for file in table.scan().files()
        }
        for file in files:
            place = urlsplit(file["url"])
            assert place.port == remote_store.port
            asked = {name.lower(): values[0] for name, values in parse_qs(place.query).items()}
            assert "sig" in asked or asked["x-amz-expires"] == "900"
            answer = client.ask("GET", file["url"])
            assert answer.body == stored[file["size"]]
            part = client.ask("GET", file["url"], headers={"Range": "bytes=4-7"})
            assert (part.status, part.body) == (206, answer.body[4:8])
        if remote_store.kind == "azurite":  # moto checks no signature
            other = urlsplit(files[1]["url"]).path
            stolen = urlsplit(files[0]["url"])._replace(path=other).geturl()
            assert client.ask("GET", stolen).status == 403
            assert client.ask("PUT", files[0]["url"], b"x", {"x-ms-blob-type": "BlockBlob"}).status == 403
        vectors = client.query("mapped_store", FEATURES).files[0]["deltaSingleAction"]["add"][
            "deletionVector"
        ]
        assert urlsplit(vectors["pathOrInlineDv"]).port == remote_store.port
        assert client.ask("GET", vectors["pathOrInlineDv"]).body[0] == 1


def test_ranges_are_asked_of_the_store_as_ranges(
    remote_store: TableServer, remote_proxy: HttpProxy, tmp_path: Path
) -> None:
    urls = uploaded(remote_store, tmp_path)
    options = remote_store.through(remote_proxy)
    with running_server(tmp_path, {}, config(remote_store, urls, options)) as server:
        client = Sharing(server)
        link = client.query("readings_server").files[0]["url"]
        remote_proxy.requests.clear()
        assert len(client.ask("GET", link, headers={"Range": "bytes=10-19"}).body) == 10
        assert len(remote_proxy.requests) == 1
        assert client.ask("HEAD", link).status == 200
        assert len(remote_proxy.requests) == 1  # the log has told the size


def test_a_store_that_is_down_is_worth_another_try(
    remote_store: TableServer, remote_proxy: HttpProxy, tmp_path: Path
) -> None:
    urls = uploaded(remote_store, tmp_path)
    options = remote_store.through(remote_proxy) | {
        "delta.request.attempts_max": "2",
        "delta.request.backoff_seconds": "0.01",
    }
    with running_server(tmp_path, {}, config(remote_store, urls, options)) as server:
        client = Sharing(server)
        link = client.query("readings_server").files[0]["url"]
        remote_proxy.plan = lambda _: Fault(kind="status", status=503)
        answer = client.query("readings_server")
        assert (answer.status, answer.json["errorCode"]) == (503, "TEMPORARILY_UNAVAILABLE")
        assert "127.0.0.1" not in answer.json["message"]
        assert client.get(f"{table_path('readings_server')}/version").status == 503
        assert client.ask("GET", link).status == 503


def test_a_folder_signs_no_links(tmp_path: Path) -> None:
    table = readings_table(tmp_path, hours=1)
    with running_server(tmp_path, {"readings": table}, 'file_links = "store"') as server:
        answer = Sharing(server).query("readings")
        assert answer.status == 400 and 'file_links = "server"' in answer.json["message"]


@pytest.mark.parametrize("seconds", ["0", "604801"])
def test_links_that_no_store_would_sign_are_not_configured(tmp_path: Path, seconds: str) -> None:
    with (
        pytest.raises(Exception, match="link_seconds"),
        running_server(tmp_path, {}, f"link_seconds = {seconds}"),
    ):
        pass
