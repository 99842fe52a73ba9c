"""A hundred clients at once: none fails, every answer is right, nothing is left behind."""

from __future__ import annotations

import threading
from pathlib import Path

import psutil

import lazydelta as ld
from tests.support.row_tables import eventually, readings_table
from tests.support.serving import RunningServer, planned, running_server

CLIENTS, EACH = 100, 3


def ask(server: RunningServer, expected: set[str], told: list[str], start: threading.Barrier) -> None:
    with server.flight() as client:
        start.wait()
        for turn in range(EACH):
            try:
                if turn % 2:
                    found = client.do_get(planned(client, table="readings", limit=100).endpoints[0].ticket)
                    told.append("rows" if found.read_all().num_rows == 100 else "too few rows")
                else:
                    info = planned(client, table="readings", what="files", limit=100)
                    paths = set(client.do_get(info.endpoints[0].ticket).read_all()["path"].to_pylist())
                    told.append("files" if paths == expected else "other files")
            except Exception as error:  # noqa: BLE001 - counted below
                told.append(repr(error))


def test_a_hundred_clients_are_answered(tmp_path: Path) -> None:
    url = readings_table(tmp_path)
    expected = {file.path for file in ld.open(url).scan().files()}
    with running_server(tmp_path, {"readings": url}, "[limits]\nwaiting_seconds = 60\n") as server:
        told: list[str] = []
        start = threading.Barrier(CLIENTS)
        threads = [threading.Thread(target=ask, args=(server, expected, told, start)) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {kind: told.count(kind) for kind in set(told)} == {"files": 2 * CLIENTS, "rows": CLIENTS}
        assert eventually(lambda: not server.process.served.admission.running())
        before = psutil.Process().num_fds()
    assert eventually(lambda: psutil.Process().num_fds() <= before)
