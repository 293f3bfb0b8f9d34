import pytest

from specserve.errors import ConfigError
from specserve.flags import FlagParser


def parser() -> FlagParser:
    flags = FlagParser("specserve try", usage="specserve try N", about="Tries.")
    flags.add_argument("--number", type=int, help="how many")
    return flags


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--number", "x"], "invalid int value"),
        (["--numb", "3"], "unrecognized arguments: --numb"),
        (["--number"], "expected one argument"),
    ],
)
def test_a_wrong_flag_is_a_wrong_configuration(words: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=rf"{told}.*specserve try --help"):
        parser().parse_args(words)


def test_help_is_a_hundred_columns_wide_on_any_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = parser()
    wide.add_argument("--other", help="word " * 40)
    monkeypatch.setenv("COLUMNS", "300")

    assert 90 < max(map(len, wide.format_help().splitlines())) <= 100
