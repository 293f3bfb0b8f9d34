"""The published layout on disk: bfloat16 safetensors, config.json, and nothing else needed."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from demo_training.eagle3 import Draft
from demo_training.llama import Llama
from demo_training.settings import Shape


def save_target(target: Llama, folder: Path, end_of_text_id: int) -> None:
    """Write config.json, generation_config.json and the weights rounded to bfloat16."""
    folder.mkdir(parents=True, exist_ok=True)
    ends = {name: end_of_text_id for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    config = {
        "architectures": ["LlamaForCausalLM"],
        **_shape_config(target.shape),
        "num_hidden_layers": target.shape.num_layers,
        "vocab_size": target.shape.vocab_size,
        "tie_word_embeddings": True,
        **ends,
    }
    _write_json(folder / "config.json", config)
    _write_json(folder / "generation_config.json", {"_from_model_config": True, **ends})
    _save_rounded(dict(target.state_dict()), folder)


def save_draft(draft: Draft, folder: Path, end_of_text_id: int) -> None:
    """Write the head with its vocabulary maps: d2t as offsets, t2d as a mask."""
    folder.mkdir(parents=True, exist_ok=True)
    num_draft_ids, shape = len(draft.draft_ids), draft.shape
    config = {
        "architectures": ["LlamaForCausalLMEagle3"],
        **_shape_config(shape),
        "num_hidden_layers": 1,
        "vocab_size": shape.vocab_size,
        "draft_vocab_size": num_draft_ids,
        "target_hidden_size": shape.hidden_size,
        "tie_word_embeddings": False,
        "bos_token_id": end_of_text_id,
        "eos_token_id": end_of_text_id,
        "pad_token_id": end_of_text_id,
        "eagle_config": {
            # The published key counts by a layer's output: what layer 2 takes in, layer 1 put out.
            "eagle_aux_hidden_state_layer_ids": [i - 1 for i in shape.aux_layer_inputs],
            "use_aux_hidden_state": True,
        },
    }
    _write_json(folder / "config.json", config)
    draft_ids = draft.draft_ids.cpu()
    is_proposable = torch.zeros(shape.vocab_size, dtype=torch.bool)
    is_proposable[draft_ids] = True
    maps = {"d2t": draft_ids - torch.arange(num_draft_ids), "t2d": is_proposable}
    _save_rounded({**draft.state_dict(), **maps}, folder)


def load_target(folder: Path, device: torch.device) -> Llama:
    """The saved target in float32: with the rounding that the user gets."""
    config = json.loads((folder / "config.json").read_text())
    target = Llama(_shape(config, num_layers=config["num_hidden_layers"]))
    target.load_state_dict(_float32(folder))
    return target.to(device).eval().requires_grad_(False)


def load_draft(folder: Path, target: Llama, device: torch.device) -> Draft:
    """The saved draft in float32; `target` tells how many layers the aux ids refer to."""
    tensors = _float32(folder)
    offsets = tensors.pop("d2t")
    del tensors["t2d"]
    draft = Draft(target.shape, offsets + torch.arange(len(offsets)))
    draft.load_state_dict(tensors)
    return draft.to(device).eval().requires_grad_(False)


@torch.no_grad()
def transformers_difference(folder: Path, target: Llama, tokens: Tensor) -> float:
    """Largest logit difference, float32, between `target` and `transformers` on [B, T] tokens."""
    from transformers import LlamaForCausalLM  # heavy: only where a checkpoint is verified

    reference = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    expected = reference(tokens.cpu()).logits
    actual = target(tokens).logits.cpu()
    return float((expected - actual).abs().max())


def _shape_config(shape: Shape) -> dict[str, Any]:
    return {
        "model_type": "llama",
        "hidden_size": shape.hidden_size,
        "intermediate_size": shape.intermediate_size,
        "num_attention_heads": shape.num_heads,
        "num_key_value_heads": shape.num_kv_heads,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": shape.context_length,
        "rope_theta": shape.rope_theta,
        "rms_norm_eps": shape.norm_eps,
        "attention_bias": False,
        "mlp_bias": False,
        "torch_dtype": "bfloat16",
    }


def _shape(config: dict[str, Any], num_layers: int) -> Shape:
    return Shape(
        vocab_size=config["vocab_size"],
        num_layers=num_layers,
        hidden_size=config["hidden_size"],
        intermediate_size=config["intermediate_size"],
        num_heads=config["num_attention_heads"],
        num_kv_heads=config["num_key_value_heads"],
        head_dim=config["head_dim"],
        context_length=config["max_position_embeddings"],
        rope_theta=config["rope_theta"],
        norm_eps=config["rms_norm_eps"],
    )


def _save_rounded(tensors: dict[str, Tensor], folder: Path) -> None:
    rounded = {
        name: (tensor.to(torch.bfloat16) if tensor.is_floating_point() else tensor)
        .cpu()
        .contiguous()
        for name, tensor in tensors.items()
    }
    save_file(rounded, folder / "model.safetensors", metadata={"format": "pt"})


def _float32(folder: Path) -> dict[str, Tensor]:
    tensors = load_file(folder / "model.safetensors")
    return {
        name: tensor.float() if tensor.is_floating_point() else tensor
        for name, tensor in tensors.items()
    }


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n")
