"""A composed tree becomes a RunConfig, or all that is wrong with it."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from specserve.config.problems import problems_of
from specserve.config.rules import RULES
from specserve.config.run import RunConfig
from specserve.errors import ConfigError, Problem


def parse_run(tree: Mapping[str, Any]) -> RunConfig:
    """The run that `tree` (plain data, everything resolved) describes.

    Raises ConfigError with all problems: those of single values, and those across sections as far
    as the sections they concern are valid.
    """
    try:
        config = RunConfig.model_validate(tree)
    except ValidationError as error:
        partial = _valid_sections(tree, error)
        raise ConfigError([*problems_of(error, tree), *_across_sections(partial)]) from error
    problems = list(_across_sections(config))
    if problems:
        raise ConfigError(problems)
    return config


def section_problems(tree: Mapping[str, Any], name: str) -> list[Problem]:
    """What is wrong with one section of a composed `tree`, whatever the others hold."""
    try:
        RunConfig.model_validate(tree)
    except ValidationError as error:
        found = [p for p in problems_of(error, tree) if p.key.partition(".")[0] == name]
        if found:
            return found
    section: Any = {name: _section(name, tree[name])}
    return list(_across_sections(RunConfig.model_construct(**section)))


def _valid_sections(tree: Mapping[str, Any], error: ValidationError) -> RunConfig:
    """A RunConfig that lacks the invalid sections; only for rules that do not read those."""
    invalid = {detail["loc"][0] for detail in error.errors(include_url=False)}
    valid = [name for name in RunConfig.model_fields if name not in invalid]
    sections: Any = {name: _section(name, tree[name]) for name in valid}
    return RunConfig.model_construct(**sections)


def _section(name: str, value: object) -> object:
    field = RunConfig.model_fields[name]
    form: Any = field.annotation
    if field.discriminator is not None:
        form = Annotated[form, Field(discriminator=field.discriminator)]
    adapter: TypeAdapter[object] = TypeAdapter(form)
    return adapter.validate_python(value)


def _across_sections(config: RunConfig) -> Iterator[Problem]:
    present = config.model_fields_set
    for rule in RULES:
        if rule.reads <= present:
            yield from rule.find(config)
