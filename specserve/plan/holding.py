"""How a matrix is held in memory: its type, and the scales that come with few bits."""

from dataclasses import dataclass

from specserve.checkpoint.dtype import DTYPE_BYTES, ActivationDtype
from specserve.checkpoint.quantization import stored_quantization
from specserve.plan.execution import Device
from specserve.plan.values import DraftPlan, TargetPlan

# Schemes that a checkpoint is stored in: nothing is quantized while loading.
STORED_SCHEMES = ("compressed_tensors_int4", "awq", "gptq", "nvfp4")
_USUAL_GROUP = {"awq": 128, "gptq": 128, "nvfp4": 16}
_INT8_ROW_BYTES = 4 + 1
_FP8_BLOCK = 128
_FP8_SCALE_BYTES = 4
# torchao's 4-bit layout for CUDA fills the inputs of a layer up to a multiple of these.
_INT4_CUDA_ROW = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """How matrices are held: plain in `dtype`, or in 8 or 4 bits with scales of that type.

    Some kernels need rows of a multiple of `row_multiple` numbers: shorter ones are filled up.
    """

    dtype: ActivationDtype
    scheme: str
    group_size: int | None
    row_multiple: int = 1
    num_bits: int = 4

    def matrix_bytes(self, numel: int, num_rows: int) -> int:
        """Bytes of a matrix that the scheme applies to.

        int8 has a float32 scale and an int8 zero point for each row, fp8 a float32 scale for each
        block of 128 x 128, int4 a scale and a zero point for each group. Of stored checkpoints
        compressed-tensors has a scale for each group, awq and gptq a zero point of as many bits
        beside it, and nvfp4 an fp8 scale.
        """
        dtype_bytes = DTYPE_BYTES[self.dtype]
        if self.scheme == "none":
            return numel * dtype_bytes
        if self.scheme == "int8":
            return numel + num_rows * _INT8_ROW_BYTES
        columns = -(-numel // num_rows)
        if self.scheme == "fp8":
            num_blocks = -(-num_rows // _FP8_BLOCK) * -(-columns // _FP8_BLOCK)
            return numel + num_blocks * _FP8_SCALE_BYTES
        numel = num_rows * -(-columns // self.row_multiple) * self.row_multiple
        num_groups = numel // (self.group_size or _USUAL_GROUP.get(self.scheme, numel))
        return numel * self.num_bits // 8 + num_groups * self._group_bits(dtype_bytes) // 8

    def _group_bits(self, dtype_bytes: int) -> int:
        """What a group has beside its weights."""
        return {
            "int4": 2 * 8 * dtype_bytes,
            "compressed_tensors_int4": 8 * dtype_bytes,
            "awq": 8 * dtype_bytes + self.num_bits,
            "gptq": 8 * dtype_bytes + self.num_bits,
            "nvfp4": 8,
        }[self.scheme]


def holding_of(plan: TargetPlan | DraftPlan, device: Device) -> Holding:
    """How a planned model's quantized matrices are held on this kind of device."""
    fills_up = plan.quantization == "int4" and device == "cuda"
    stored = stored_quantization(plan.config) if plan.quantization in STORED_SCHEMES else None
    return Holding(
        dtype=plan.dtype,
        scheme=plan.quantization,
        group_size=plan.quantization_group_size or (stored.group_size if stored else None),
        row_multiple=_INT4_CUDA_ROW if fills_up else 1,
        num_bits=(stored.num_bits if stored else None) or 4,
    )
