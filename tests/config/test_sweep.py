import pytest

from specserve.config.sweep import SweptRun, expand_sweeps


def test_without_a_sweep_there_is_one_run() -> None:
    assert [SweptRun(("a=1", "b=[1,2]"), ())] == expand_sweeps(["a=1", "b=[1,2]"])


def test_the_last_override_varies_fastest() -> None:
    assert [
        SweptRun(("p=x", "k=0", "n=1"), ("p=x", "n=1")),
        SweptRun(("p=x", "k=0", "n=2"), ("p=x", "n=2")),
        SweptRun(("p=y", "k=0", "n=1"), ("p=y", "n=1")),
        SweptRun(("p=y", "k=0", "n=2"), ("p=y", "n=2")),
    ] == expand_sweeps(["p=x,y", "k=0", "n=1,2"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+experiment=a,b", ["+experiment=a", "+experiment=b"]),
        ("n=range(1,4)", ["n=1", "n=2", "n=3"]),
        ("n=choice(a,7)", ["n=a", "n=7"]),
        ("t=[1,2],[3]", ["t=[1,2]", "t=[3]"]),
    ],
)
def test_every_listing_of_hydra_is_read(text: str, expected: list[str]) -> None:
    assert expected == [run.overrides[0] for run in expand_sweeps([text])]


@pytest.mark.parametrize("text", ["x", "=", "a=[", "a=glob(*)", "a=interval(0,1)"])
def test_what_is_no_listing_stays_for_others_to_name(text: str) -> None:
    assert [SweptRun((text,), ())] == expand_sweeps([text])
