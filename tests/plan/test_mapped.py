"""Which pages of a checkpoint's file stay in memory: the sum is the file, or nothing."""

import pytest

from specserve.checkpoint.header import CheckpointFacts, TensorHeader
from specserve.plan.mapped import mapped_file_bytes


def header(dtype: str, *shape: int) -> TensorHeader:
    return TensorHeader(dtype=dtype, shape=shape)


def checkpoint(dtype: str) -> CheckpointFacts:
    return CheckpointFacts(
        path="t",
        config={},
        generation_config={},
        tensors={
            "model.embed_tokens.weight": header(dtype, 100, 8),
            "model.layers.0.self_attn.q_proj.weight": header(dtype, 8, 8),
            "model.layers.0.self_attn.o_proj.weight": header(dtype, 8, 8),
            "model.norm.weight": header(dtype, 8),
        },
        d2t=None,
        t2d=None,
        has_tokenizer=True,
        tokenizer_vocab_size=None,
        weight_bytes=None,
        sha256="",
    )


@pytest.mark.parametrize(
    ("stored", "dtype", "scheme", "num_bytes"),
    [
        ("F32", "float32", "none", 2 * 64 * 4),  # every matrix is packed
        ("BF16", "bfloat16", "none", 64 * 2),  # queries are put together with keys and values
        ("BF16", "bfloat16", "int8", 2 * 64 * 2),
        ("BF16", "float32", "none", 0),  # all are cast, so the file is let go
    ],
)
def test_the_pages_of_copied_tensors_stay_while_others_are_used_as_stored(
    stored: str, dtype: str, scheme: str, num_bytes: int
) -> None:
    assert num_bytes == mapped_file_bytes(checkpoint(stored), dtype, scheme)  # type: ignore[arg-type]
