"""Pages of the checkpoint's files that stay in memory on a CPU beside the tensors made of them.

engine=torch reads from mapped files. A tensor that is used as it is stored is such a part of a
file; while one of them lives, the whole file stays mapped, and with it the pages of tensors that
were copied: put together, packed or quantized. Clean pages: under pressure the system drops them.
"""

from specserve.checkpoint.dtype import ActivationDtype
from specserve.checkpoint.header import CheckpointFacts

_STORED = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}
# The engine puts these together: one matrix for queries, keys and values, one for gate and up.
_PUT_TOGETHER = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")
_MATRICES = (*_PUT_TOGETHER, "o_proj", "down_proj", "lm_head", "fc")


def mapped_file_bytes(checkpoint: CheckpointFacts, dtype: ActivationDtype, scheme: str) -> int:
    """Bytes of stored tensors that were copied; 0 where nothing is used as it is stored."""
    tensors = checkpoint.tensors or {}
    as_stored = {name for name, one in tensors.items() if one.dtype == _STORED[dtype]}
    # In float32 every matrix is packed; quantizing copies the layers' matrices.
    copied = _MATRICES if dtype == "float32" or scheme != "none" else _PUT_TOGETHER
    kept = {name for name in as_stored if not _owner(name).endswith(copied)}
    if not kept:
        return 0
    return sum(one.num_bytes for name, one in tensors.items() if name not in kept)


def _owner(name: str) -> str:
    return name.removesuffix(".weight").removesuffix(".bias")
