import pytest

from specserve.errors import ConfigError
from specserve.sglang_engine.versions import NEWEST, SUPPORTED, Release, Row, Span, find_release


@pytest.mark.parametrize("version", SUPPORTED)
def test_a_supported_release_is_treated_by_its_own_rows(version: str) -> None:
    release = find_release(version, allow_untested=False)

    assert Release(version, version) == release
    assert not release.is_untested


@pytest.mark.parametrize("version", ["0.5.24", "0.5.16", "0.6.0", "0.5.17.post1", "0.5.23rc1", "?"])
def test_another_release_is_refused_with_both_numbers(version: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_release(version, allow_untested=False)

    [problem] = caught.value.problems
    assert f"SGLang 0.5.17 to {NEWEST}, found {version}" == problem.expected
    assert problem.fix.startswith("set engine.allow_untested_version=true")


@pytest.mark.parametrize(
    ("version", "table"),
    [
        ("0.5.24", NEWEST),
        ("0.6.0", NEWEST),
        ("1.0.0", NEWEST),
        ("0.5.9", "0.5.17"),
        ("0.4.99", "0.5.17"),
        ("0.5.17.post1", "0.5.17"),
        ("0.5.20.dev3+g1", "0.5.20"),
        ("a fork", "0.5.17"),
    ],
)
def test_an_untested_release_is_treated_as_the_nearest_older_one(version: str, table: str) -> None:
    release = find_release(version, allow_untested=True)

    assert Release(version, table) == release
    assert release.is_untested


def test_a_row_answers_for_each_release_by_its_span() -> None:
    old = Span(since="0.5.17", until="0.5.19", value=1, evidence=())
    new = Span(since="0.5.20", until="0.5.23", value=2, evidence=())
    row = Row("a number", (old, new))

    assert [1, 1, 1, 2, 2, 2, 2] == [row.at(Release(version, version)) for version in SUPPORTED]


def test_a_row_with_a_gap_says_so() -> None:
    row = Row("a number", (Span(since="0.5.20", until="0.5.23", value=2, evidence=()),))

    with pytest.raises(LookupError, match=r"a number: no span holds for 0\.5\.17"):
        row.at(Release("0.5.17", "0.5.17"))
