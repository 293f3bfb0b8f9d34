"""What the engine, or another part, gets of a key."""

from collections.abc import Sequence

from specserve.config.run import RunConfig
from specserve.explain.engine_arguments import EngineArgument
from specserve.explain.torch_uses import torch_use
from specserve.sglang_engine.key_map import ELSEWHERE, MAPPED


def becomes(key: str, config: RunConfig, arguments: Sequence[EngineArgument]) -> tuple[str, ...]:
    """In words; empty if nobody reads the key under this engine.

    `arguments` are those of a planned run; without a plan an argument has its name only.
    """
    if config.engine.kind == "torch":
        use = torch_use(key)
        return () if use is None else (str(use),)
    given = tuple(str(one) for one in arguments if _belongs(one.key, key))
    if given:
        return given
    if key in ELSEWHERE:
        return (f"no argument: read by {ELSEWHERE[key]}",)
    fields = MAPPED.get(key, ())
    flags = " ".join(f"--{field.replace('_', '-')}" for field in fields)
    if not flags:
        return ()
    return (f"no argument: SGLang's own default of {flags}",) if arguments else (flags,)


def _belongs(own: str, key: str) -> bool:
    return own == key or own.startswith(f"{key}.")
