"""The arguments that an engine outside specserve is started with, each with its key."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from specserve.plan import Plan
from specserve.sglang_engine.arguments import File, ServerArguments
from specserve.sglang_engine.settle import settle


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineArgument:
    """`name` and `value` as the engine reads them; `key` is the setting that it comes from.

    A switch has no value.
    """

    name: str
    value: str
    key: str

    def __str__(self) -> str:
        between = " " if self.name.startswith("--") and self.value else "=" * bool(self.value)
        return f"{self.name}{between}{self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineView:
    """A plan with the engine's own decisions among its adjustments, and what the engine is given.

    `release` names the engine and the version whose arguments these are; None for engine=torch,
    which reads the plan itself.
    """

    plan: Plan
    arguments: tuple[EngineArgument, ...]
    release: str | None


def engine_view(plan: Plan, installed: str | None) -> EngineView:
    """The plan as its engine carries it out; `installed` is SGLang's version, None if it isn't.

    Raises ConfigError with every value that the engine would not keep.
    """
    if plan.sglang is None:
        return EngineView(plan=plan, arguments=(), release=None)
    settled = settle(plan, installed)
    return EngineView(
        plan=settled.plan,
        arguments=tuple(_arguments(settled.arguments)),
        release=f"SGLang {settled.arguments.release}",
    )


def _arguments(arguments: ServerArguments) -> Iterator[EngineArgument]:
    for argument in arguments.arguments:
        name, *values = argument.words(Path())
        if isinstance(argument.value, File):  # what it holds is what counts
            values.append(" ".join(argument.value.content.split()))
        yield EngineArgument(name=name, value=" ".join(values), key=argument.key)
    for variable in arguments.environment:
        yield EngineArgument(name=variable.name, value=variable.value, key=variable.key)
