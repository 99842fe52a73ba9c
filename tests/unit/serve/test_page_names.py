"""Names that are words of a language, or hold anything: completed and asked for as it takes them."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pyarrow as pa
from deltalake import write_deltalake

from lazydelta.engines.kql.vocabulary import FUNCTIONS, OPERATORS, SOURCES, WORDS
from lazydelta.serve.page.requests import Language
from lazydelta.serve.page.spelling import spelled
from tests.support.page import get, post, query
from tests.support.serving import running_server

LANGUAGES: tuple[Language, ...] = get_args(Language)
ASKED = {"sql": "select {} from {}", "kql": "{1} | project {0}"}
WORDS_AS_COLUMNS = sorted(
    {*OPERATORS, *SOURCES, *FUNCTIONS, *WORDS, "from", "select", "table", "type", "left"}
)
ODD = ["order id, näme", "order", 'a"b', "it's", "celsius"]


def odd_table(folder: Path) -> str:
    """Columns whose names mean something else unless they are quoted."""
    url = str(folder / "odd")
    write_deltalake(url, pa.table({name: [1, 2] for name in ODD}))
    return url


def test_names_are_completed_as_the_languages_take_them(tmp_path: Path) -> None:
    url = odd_table(tmp_path)
    with running_server(tmp_path, {"order": url, "my-table": url}) as server:

        def found(language: str, before: str) -> tuple[str, list[str]]:
            body = {"language": language, "text": f"{before} from order", "before": before, "table": "order"}
            told = post(server, "completions", **body).json()
            return told["word"], [one["text"] for one in told["candidates"]]

        assert found("sql", "select ord") == ("ord", ['"order"', "order", '"order id, näme"', "ord"])
        assert found("sql", 'select "ord') == ('"ord', ['"order"', '"order id, näme"'])
        assert found("sql", "select a")[1][0] == '"a""b"'
        assert found("sql", 'select "a", cel') == ("cel", ["celsius"])
        assert found("sql", "select * from my") == ("my", ['"my-table"'])
        assert found("kql", "['order'] | where ord") == ("ord", ["['order']", "order", "['order id, näme']"])
        assert found("kql", "['order'] | where ['ord") == ("['ord", ["['order']", "['order id, näme']"])
        assert found("kql", "['order'] | where it") == ("it", ["['it\\'s']"])
        assert found("kql", "['order'] | ord") == ("ord", ["order"])
        assert found("kql", "external_table('my") == ("my", ["my-table"])
        tables = {one["name"]: one for one in get(server, "tables").json()["tables"]}
        assert [tables[name]["sql_name"] for name in ("my-table", "order")] == ['"my-table"', '"order"']
        assert [tables[name]["kql_name"] for name in ("my-table", "order")] == ["['my-table']", "['order']"]
        for name in ODD:
            for language in LANGUAGES:
                text = ASKED[language].format(spelled(name, language), tables["order"][f"{language}_name"])
                names, rows, end = query(server, language, text)
                assert (names, len(rows), end["error"]) == ([name], 2, None), text


def test_words_of_the_languages_are_names_where_they_are_spelled_as_such(tmp_path: Path) -> None:
    url = str(tmp_path / "words")
    write_deltalake(url, pa.table({name: [1] for name in WORDS_AS_COLUMNS}))
    with running_server(tmp_path, {"words": url}) as server:
        for language in LANGUAGES:
            columns = ", ".join(spelled(name, language) for name in WORDS_AS_COLUMNS)
            names, rows, end = query(server, language, ASKED[language].format(columns, "words"))
            assert (names, len(rows), end["error"]) == (WORDS_AS_COLUMNS, 1, None)
