"""The page about KQL's operators and functions is what its generator writes."""

from __future__ import annotations

from docs import generate_kql_functions


def test_the_page_is_what_its_generator_writes() -> None:
    written = generate_kql_functions.PAGE.read_text("utf-8")
    assert written == generate_kql_functions.page(), "run python docs/generate_kql_functions.py"


def test_the_page_counts_no_wrong_answer_and_names_every_refusal() -> None:
    page = generate_kql_functions.page()
    total = next(line for line in page.splitlines() if line.startswith("| **all**"))
    right, cut, refused, wrong, _ = (int(cell) for cell in total.split("|")[2:-1])
    assert wrong == 0
    assert right + cut > 4 * refused
    assert page.count("`hash_xxhash64` (3)") == 1
