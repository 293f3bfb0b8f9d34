"""The plan's model parts for a checkpoint folder, without configuration or facts."""

import json
from pathlib import Path
from typing import Any, Literal

from specserve.plan import DraftPlan, TargetPlan

DtypeName = Literal["float32", "bfloat16", "float16"]


def target_plan(
    folder: Path,
    *,
    dtype: DtypeName = "float32",
    quantization: Literal["none", "int8", "int4"] = "none",
    group_size: int | None = None,
) -> TargetPlan:
    """The target in `folder`, named after the folder, at its own context length."""
    config = _read_config(folder)
    eos = config.get("eos_token_id")
    return TargetPlan(
        name=folder.name,
        path=str(folder),
        config=config,
        architecture=config["model_type"],
        dtype=dtype,
        quantization=quantization,
        quantization_group_size=group_size,
        num_layers=config["num_hidden_layers"],
        hidden_size=config["hidden_size"],
        num_kv_heads=config["num_key_value_heads"],
        head_dim=config["head_dim"],
        vocab_size=config["vocab_size"],
        context_length=config["max_position_embeddings"],
        eos_token_ids=() if eos is None else tuple(eos) if isinstance(eos, list) else (eos,),
        trust_remote_code=False,
    )


def draft_plan(
    folder: Path,
    *,
    aux_layer_inputs: tuple[int, ...],
    borrowed: tuple[Literal["embed_tokens", "lm_head"], ...] = ("embed_tokens",),
    dtype: DtypeName = "float32",
    quantization: Literal["none", "int8", "int4"] = "none",
    group_size: int | None = None,
) -> DraftPlan:
    """The EAGLE-3 head in `folder`, fed by the named aux layers."""
    config = _read_config(folder)
    return DraftPlan(
        path=str(folder),
        config=config,
        dtype=dtype,
        quantization=quantization,
        quantization_group_size=group_size,
        aux_layer_inputs=aux_layer_inputs,
        draft_vocab_size=config["draft_vocab_size"],
        num_kv_heads=config["num_key_value_heads"],
        head_dim=config["head_dim"],
        borrowed=borrowed,
    )


def _read_config(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return config
