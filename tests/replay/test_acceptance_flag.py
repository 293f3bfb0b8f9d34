import pytest

from specserve.errors import ConfigError
from specserve.replay.acceptance_flag import read_acceptance


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.5", (0.5, 0.25)), ("0.8,0.6", (0.8, 0.6)), ("[0.8, 0.6,0.1]", (0.8, 0.6))],
)
def test_one_chance_or_one_for_each_position(text: str, expected: tuple[float, ...]) -> None:
    assert pytest.approx(expected) == read_acceptance("acceptance", text, 2)


@pytest.mark.parametrize(
    ("text", "fix"), [("70", "acceptance=0.7"), ("high", "plain number"), ("[0.5]", "give all 2")]
)
def test_a_wrong_one_is_named_with_its_key(text: str, fix: str) -> None:
    with pytest.raises(ConfigError, match=f"--acceptance='.*{fix}"):
        read_acceptance("--acceptance", text, 2)
