"""The plan's rule for a second lm_head against what the torch engine really holds."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from specserve.config.load import load_run
from specserve.facts import gather_facts
from specserve.plan import Plan, make_plan
from specserve.testing.checkpoints import write_target
from specserve.torch_engine.build import weight_bytes
from specserve.torch_engine.linear import can_pack
from specserve.torch_engine.weights import load_target

ROW = "memory.target_weight_bytes"


@contextmanager
def threads(num_threads: int) -> Iterator[None]:
    """The number of threads is torch's own state: give it back."""
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def plan(target: Path, num_threads: int, *overrides: str) -> Plan:
    own = [f"model.path={target}", f"engine.num_threads={num_threads}", "engine.device=cpu"]
    config = load_run([*own, "model.dtype=float32", *overrides]).config
    return make_plan(config, gather_facts(config))


def second_head(planned: Plan) -> int:
    """Bytes that the plan counts for it, as its row says."""
    return sum(row.effective - row.asked for row in planned.adjustments if row.key == ROW)


@pytest.mark.skipif(not can_pack(), reason="this torch has no oneDNN, so nothing is packed")
@pytest.mark.parametrize(
    ("vocab_size", "hidden_size", "num_threads", "twice"),
    [
        (511, 64, 2, False),  # below 2^15 weights a plain product is as fast
        (512, 64, 2, True),
        (512, 64, 1, False),
        (4096, 64, 1, False),  # 1 MiB: one thread reads it ahead
        (4097, 64, 1, True),
        (8192, 2048, 2, True),  # 64 MiB
        (8193, 2048, 2, False),
    ],
)
def test_a_tied_head_is_planned_as_it_is_held(
    tmp_path: Path, vocab_size: int, hidden_size: int, num_threads: int, twice: bool
) -> None:
    folder = write_target(
        tmp_path,
        architecture="llama",
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        head_dim=16,
        num_layers=1,
        tie_embeddings=True,
    )
    planned = plan(folder, num_threads)

    with threads(num_threads):
        held = weight_bytes(load_target(planned.target, (), torch.device("cpu")))

    assert held == planned.memory.target_weight_bytes
    assert second_head(planned) == (vocab_size * hidden_size * 4 if twice else 0)


@pytest.mark.parametrize("overrides", [["model.dtype=bfloat16"], ["engine=sglang"]])
def test_only_float32_of_engine_torch_is_packed(tmp_path: Path, overrides: list[str]) -> None:
    folder = write_target(tmp_path, architecture="llama", vocab_size=512, tie_embeddings=True)
    config = load_run([f"model.path={folder}", "model.dtype=float32", *overrides]).config
    facts = gather_facts(config)
    if config.engine.kind == "sglang":
        gpu = {"name": "G", "memory_bytes": 2**38, "compute_capability": "9.0"}
        machine = facts.machine.model_validate(
            {**facts.machine.model_dump(), "gpus": (gpu,)}, strict=False
        )
        facts = facts.model_copy(update={"machine": machine})

    assert 0 == second_head(make_plan(config, facts))


def test_an_untied_head_is_packed_in_place(tmp_path: Path) -> None:
    folder = write_target(tmp_path, architecture="llama", vocab_size=512)

    assert 0 == second_head(plan(folder, 2))
