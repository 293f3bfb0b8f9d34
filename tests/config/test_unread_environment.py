import pytest
from omegaconf import OmegaConf

from specserve.config.unread_environment import unread_environment


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hunter2")


def _resolved(text: str) -> object:
    return OmegaConf.to_object(OmegaConf.create({"a": text}))["a"]  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("${oc.env:SECRET}", "$SECRET"),
        ("a ${oc.env:SECRET} b", "a $SECRET b"),
        ("${oc.env:SECRET,3}", "3"),
        ("${oc.env:SECRET,null}", None),
        ("${oc.decode:${oc.env:SECRET,3}}", 3),
    ],
)
def test_a_variable_is_its_name_or_its_default(written: str, expected: object) -> None:
    with unread_environment():
        assert expected == _resolved(written)


def test_afterwards_the_environment_is_read_again() -> None:
    with unread_environment():
        pass
    with pytest.raises(ZeroDivisionError), unread_environment():
        1 / 0  # noqa: B018

    assert "hunter2" == _resolved("${oc.env:SECRET}")
