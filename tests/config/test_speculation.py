import pytest

from specserve.config.compose import compose_tree
from specserve.config.run import RunConfig
from specserve.config.speculation import draft_path


@pytest.mark.parametrize(
    ("overrides", "path"),
    [
        (["speculation=off"], None),
        (["speculation=ngram"], None),
        (["speculation=mtp"], None),
        (["speculation=mtp", "speculation.draft.path=/d"], "/d"),
        (["speculation=eagle3_topk1", "speculation.draft.path=/d"], "/d"),
        (["speculation=dflash", "speculation.draft.path=/d"], "/d"),
    ],
)
def test_a_draft_has_a_checkpoint_of_its_own_or_none(
    overrides: list[str], path: str | None
) -> None:
    run = RunConfig.model_validate(compose_tree(overrides))

    assert path == draft_path(run.speculation)
