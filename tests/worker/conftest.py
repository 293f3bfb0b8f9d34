"""A plan for a tiny random pair, and whatever else the worker's tests share."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from specserve.config.build import PhaseLimits
from specserve.config.policy import OffPolicy, PolicyConfig
from specserve.plan import (
    DraftPlan,
    MemoryPlan,
    Plan,
    SchedulerPlan,
    SpeculationPlan,
    TargetPlan,
)
from specserve.testing.checkpoints import write_draft, write_target

NUM_ROWS = 4
ROW_TOKENS = 256
CONTEXT_LENGTH = 192
NUM_LAYERS = 8
HIDDEN_SIZE = 64
VOCAB_SIZE = 320
DRAFT_VOCAB_SIZE = 128

MakePlan = Callable[..., Plan]


@pytest.fixture(autouse=True)
def _processes_find_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkout under test, also for scripts that lie elsewhere."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Folders of a random target and a random draft."""
    folder = tmp_path_factory.mktemp("checkpoints")
    target = write_target(folder / "target", architecture="llama", vocab_size=VOCAB_SIZE)
    draft = write_draft(folder / "draft", target_folder=target, draft_vocab_size=DRAFT_VOCAB_SIZE)
    return target, draft


@pytest.fixture(scope="session")
def make_plan(checkpoints: tuple[Path, Path]) -> MakePlan:
    """Plans for the random pair: with or without the draft, under any policy."""

    def plan(
        *, speculation: bool = True, policy: PolicyConfig | None = None, kv_bytes: int | None = None
    ) -> Plan:
        layer_bytes = NUM_ROWS * ROW_TOKENS * 2 * 2 * 16 * 4
        return Plan(
            engine="torch",
            device="cpu",
            num_threads=1,
            target=_target(checkpoints[0]),
            speculation=_speculation(checkpoints[1]) if speculation else None,
            policy=policy or OffPolicy(kind="off"),
            calibration=None,
            scheduler=SchedulerPlan(
                kind="sync",
                device_thread=False,
                max_running_requests=NUM_ROWS,
                max_queued_requests=8,
                prefill_chunk_tokens=64,
                max_kv_tokens=NUM_ROWS * CONTEXT_LENGTH,
                row_tokens=ROW_TOKENS,
            ),
            attention="sdpa",
            cuda_graph_batch_sizes=(),
            tensor_parallel=1,
            num_nodes=1,
            self_test_tokens=8,
            memory=MemoryPlan.counted(
                {
                    "kv": NUM_LAYERS * layer_bytes if kv_bytes is None else kv_bytes,
                    "draft_kv": layer_bytes if speculation else 0,
                }
            ),
            adjustments=(),
            warnings=(),
        )

    return plan


@pytest.fixture
def plan(make_plan: MakePlan) -> Plan:
    """With a draft, not speculating."""
    return make_plan()


@pytest.fixture(scope="session")
def make_limits() -> Callable[..., PhaseLimits]:
    """The same limit for each phase but those named."""

    def limits(seconds: float, **others: float) -> PhaseLimits:
        return PhaseLimits(**{name: others.get(name, seconds) for name in PhaseLimits.model_fields})

    return limits


@pytest.fixture
def limits(make_limits: Callable[..., PhaseLimits]) -> PhaseLimits:
    """Generous ones: a busy machine must not fail a test."""
    return make_limits(60.0)


def _target(folder: Path) -> TargetPlan:
    return TargetPlan(
        name="tiny",
        path=str(folder),
        config=json.loads((folder / "config.json").read_text()),
        architecture="llama",
        dtype="float32",
        quantization="none",
        quantization_group_size=None,
        num_layers=NUM_LAYERS,
        hidden_size=HIDDEN_SIZE,
        num_kv_heads=2,
        head_dim=16,
        vocab_size=VOCAB_SIZE,
        context_length=CONTEXT_LENGTH,
        eos_token_ids=(256,),
        trust_remote_code=False,
    )


def _speculation(folder: Path) -> SpeculationPlan:
    return SpeculationPlan(
        num_steps=3,
        depths=(1, 2, 3),
        topk=1,
        num_draft_tokens=4,
        while_off="skip",
        draft=DraftPlan(
            path=str(folder),
            config=json.loads((folder / "config.json").read_text()),
            dtype="float32",
            quantization="none",
            quantization_group_size=None,
            aux_layer_inputs=(2, 4, 5),
            draft_vocab_size=DRAFT_VOCAB_SIZE,
            num_kv_heads=2,
            head_dim=16,
            borrowed=("embed_tokens",),
        ),
    )
