"""Facts of a pair that exists on paper only: configs and headers, with what is wrong about them."""

from collections.abc import Mapping, Sequence
from typing import Any

from specserve.checkpoint.architecture import read_dimensions
from specserve.checkpoint.header import CheckpointFacts
from specserve.checkpoint.safetensors_header import TensorHeader
from specserve.checkpoint.tensors import ExpectedTensors, draft_tensors, layout, target_tensors
from specserve.facts import Facts, Gpu, Machine

TARGET, DRAFT = "/pair/target", "/pair/draft"
VOCAB, DRAFT_VOCAB, HIDDEN = 320, 128, 64
VERSIONS = {"torch": "2.11.0", "torchao": "0.18.0", "sglang": "0.5.23"}

_CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_act": "silu",
    "hidden_size": HIDDEN,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": VOCAB,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "eos_token_id": 256,
}


CPU = Machine(cpu_count=8, memory_bytes=2**36, gpus=())


def gpu_machine(capability: str = "9.0", *, count: int = 1, gib: int = 96) -> Machine:
    """Like CPU, with GPUs."""
    one = Gpu(name="some GPU", memory_bytes=gib * 2**30, compute_capability=capability)
    return CPU.model_copy(update={"gpus": (one,) * count})


def target(
    *,
    drop: Sequence[str] = (),
    headers: bool = True,
    tokenizer_vocab_size: int | None = VOCAB,
    **config: object,
) -> CheckpointFacts:
    """A Llama of 8 small layers, whole but for the tensors to `drop` and the `config` to change.

    Without `headers` only its config is known.
    """
    sound = _CONFIG | {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 8}
    size = read_dimensions(sound, key="model.path", path=TARGET)
    tensors = _headers(target_tensors(layout(sound), size), drop)
    return _checkpoint(
        TARGET,
        {**sound, **config},
        tensors if headers else None,
        tokenizer_vocab_size=tokenizer_vocab_size,
    )


def draft(
    *,
    drop: Sequence[str] = (),
    headers: bool = True,
    change: Mapping[str, TensorHeader] | None = None,
    d2t: Sequence[int] = (0,) * DRAFT_VOCAB,
    marked: Sequence[int] = tuple(range(DRAFT_VOCAB)),
    **config: object,
) -> CheckpointFacts:
    """Its EAGLE-3 head, which proposes the first ids of the target."""
    sound = _CONFIG | {
        "architectures": ["LlamaForCausalLMEagle3"],
        "num_hidden_layers": 1,
        "target_hidden_size": HIDDEN,
        "draft_vocab_size": DRAFT_VOCAB,
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 3, 4]},
    }
    size = read_dimensions(sound, key="speculation.draft.path", path=DRAFT)
    expected = draft_tensors(
        layout(sound),
        size,
        draft_vocab_size=DRAFT_VOCAB,
        target_hidden_size=HIDDEN,
        num_aux=3,
        can_borrow_embedding=True,
        can_borrow_lm_head=False,
    )
    tensors = _headers(expected, ["embed_tokens.weight", *drop]) | dict(change or {})
    return _checkpoint(
        DRAFT,
        {**sound, **config},
        tensors if headers else None,
        d2t=tuple(d2t),
        t2d=_mask(marked),
    )


def _headers(expected: ExpectedTensors, drop: Sequence[str]) -> dict[str, TensorHeader]:
    shapes = {**expected.required, **expected.optional}
    types = {"d2t": "I64", "t2d": "BOOL"}
    return {
        name: TensorHeader(dtype=types.get(name, "BF16"), shape=shape)
        for name, shape in shapes.items()
        if name not in drop
    }


def _mask(marked: Sequence[int]) -> tuple[bool, ...]:
    return tuple(index in set(marked) for index in range(VOCAB))


def _checkpoint(
    path: str,
    config: dict[str, Any],
    tensors: dict[str, TensorHeader] | None,
    *,
    d2t: tuple[int, ...] | None = None,
    t2d: tuple[bool, ...] | None = None,
    tokenizer_vocab_size: int | None = None,
) -> CheckpointFacts:
    return CheckpointFacts(
        path=path,
        config=config,
        generation_config={},
        tensors=tensors,
        d2t=d2t if tensors and "d2t" in tensors else None,
        t2d=t2d if tensors and "t2d" in tensors else None,
        has_tokenizer=tokenizer_vocab_size is not None,
        tokenizer_vocab_size=tokenizer_vocab_size,
        weight_bytes=sum(t.num_bytes for t in tensors.values()) if tensors else None,
        sha256=path,
    )


def facts(
    *,
    target: CheckpointFacts | None = target(),  # noqa: B008 - a frozen value
    draft: CheckpointFacts | None = draft(),  # noqa: B008
    machine: Machine = CPU,
    versions: Mapping[str, str] = VERSIONS,
) -> Facts:
    """Facts in which one thing is wrong, or none."""
    return Facts(
        source="made up", machine=machine, versions=dict(versions), target=target, draft=draft
    )
