"""What engine=torch holds twice on a CPU: an lm_head that is tied to the embedding, and packed.

Packed is oneDNN's own order, in which a matrix is multiplied faster; the embedding can't be read in
it. torch's builds for Linux and Windows have oneDNN; without it nothing is packed and this counts
too much.
"""

from math import prod

from specserve.checkpoint.architecture import Dimensions
from specserve.checkpoint.dtype import DTYPE_BYTES
from specserve.config.run import RunConfig
from specserve.plan.execution import Device
from specserve.plan.values import TargetPlan

# The engine's own bounds (torch_engine/linear.py and weights.py), which the plan can't import
# because it works without torch. A test holds the two together.
_LEAST_WEIGHTS = 1 << 15
_CACHE_BYTES = 1 << 20
_LARGEST_COPY_BYTES = 64 << 20


def packed_head_bytes(
    config: RunConfig, size: Dimensions, target: TargetPlan, device: Device, num_threads: int
) -> int:
    """Bytes of the second copy; 0 where the head is held once.

    One thread reads a matrix that fits into its cache ahead and needs no copy; an embedding that
    is large is not copied for any number of threads.
    """
    if config.engine.kind != "torch" or device != "cpu" or target.dtype != "float32":
        return 0
    if not size.tie_word_embeddings:
        return 0
    shape = (size.vocab_size, size.hidden_size)
    num_bytes = prod(shape) * DTYPE_BYTES[target.dtype]
    reads_ahead = num_threads == 1 and num_bytes <= _CACHE_BYTES
    if prod(shape) < _LEAST_WEIGHTS or reads_ahead or num_bytes > _LARGEST_COPY_BYTES:
        return 0
    return num_bytes
