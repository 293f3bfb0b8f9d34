import pytest

from specserve.plan.holding import Holding


@pytest.mark.parametrize(
    ("scheme", "group_size", "num_bytes"),
    [
        ("none", None, 256 * 320 * 2),
        ("int8", None, 256 * 320 + 256 * (4 + 1)),
        ("fp8", None, 256 * 320 + 2 * 3 * 4),  # blocks of 128 x 128, the last ones partly empty
        ("int4", 32, 256 * 320 // 2 + 256 * 10 * 2 * 2),
        ("compressed_tensors_int4", 32, 256 * 320 // 2 + 256 * 10 * 2),
        ("awq", 64, 256 * 320 // 2 + 256 * 5 * 2 + 256 * 5 // 2),
        ("gptq", 64, 256 * 320 // 2 + 256 * 5 * 2 + 256 * 5 // 2),
        ("nvfp4", None, 256 * 320 // 2 + 256 * 20),
    ],
)
def test_few_bits_come_with_their_scales(
    scheme: str, group_size: int | None, num_bytes: int
) -> None:
    holding = Holding(dtype="bfloat16", scheme=scheme, group_size=group_size)

    assert num_bytes == holding.matrix_bytes(256 * 320, 256)
