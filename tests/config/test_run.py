from collections.abc import Iterator

import pytest
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from specserve.config.compose import compose_tree
from specserve.config.keys import family
from specserve.config.run import RunConfig
from specserve.config.strict import StrictModel


def _every_field(model: type[StrictModel]) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        yield f"{model.__name__}.{name}", field
        for member in family(field.annotation):
            yield from _every_field(member)


def test_the_models_have_no_defaults() -> None:
    """Every default lives in conf/, so reading conf/ is reading the run."""
    assert [] == [key for key, field in _every_field(RunConfig) if not field.is_required()]


def test_a_run_is_frozen() -> None:
    run = RunConfig.model_validate(compose_tree())

    with pytest.raises(ValidationError, match="frozen"):
        run.server.port = 1


@pytest.mark.parametrize("experiment", ["baseline", "topk1_v2", "topk4_v1"])
def test_a_run_survives_its_record(experiment: str) -> None:
    """Through JSON, and through the plain data that a YAML file holds: lists stay lists."""
    run = RunConfig.model_validate(
        compose_tree([f"+experiment={experiment}", "cuda_graph.batch_sizes=[1,2,4]"])
    )

    assert run == RunConfig.model_validate_json(run.model_dump_json())
    assert run == RunConfig.model_validate(run.model_dump())
