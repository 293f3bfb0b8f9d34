"""The table of versions against the releases themselves (tests/data/sglang/evidence.json)."""

import pytest

from specserve.sglang_engine import table
from specserve.sglang_engine.table import ROWS
from specserve.sglang_engine.versions import SUPPORTED, Row
from tests.sglang_engine.plans import evidence


def test_the_table_names_every_row() -> None:
    rows = {name for name, value in vars(table).items() if isinstance(value, Row)}

    assert rows == set(ROWS)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_the_spans_of_a_row_cover_every_release_once(name: str) -> None:
    covered = [release for span in ROWS[name].spans for release in span.releases]

    assert list(SUPPORTED) == covered


@pytest.mark.parametrize("name", sorted(ROWS))
def test_every_fact_has_its_evidence_in_every_release(name: str) -> None:
    for span in ROWS[name].spans:
        assert span.evidence
        for item in span.evidence:
            assert set(span.releases) <= set(evidence()[item.file, item.text])


@pytest.mark.parametrize("name", ["POLICY_SEAM", "MIXED_CHUNK"])
def test_what_changed_is_not_what_it_was(name: str) -> None:
    """The evidence of each span is missing outside of it: so it is no accident that it differs."""
    for span in ROWS[name].spans:
        [item] = span.evidence

        assert span.releases == evidence()[item.file, item.text]
