"""Tiny random checkpoints, saved the way real ones are: targets with tokenizers, EAGLE-3 heads."""

import json
from collections.abc import Iterable, Mapping
from itertools import islice, product
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    PretrainedConfig,
    PreTrainedTokenizerFast,
)

Architecture = Literal["llama", "mistral", "qwen2", "qwen3"]
DtypeName = Literal["float32", "bfloat16", "float16"]

EOS_TOKEN = "<|endoftext|>"
EOS_ID = 256
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
_NUM_BYTES = 256


def write_target(
    folder: Path,
    *,
    architecture: Architecture,
    vocab_size: int = 320,
    hidden_size: int = 64,
    intermediate_size: int = 96,
    num_layers: int = 8,
    num_heads: int = 4,
    num_kv_heads: int = 2,
    head_dim: int | None = None,
    context_length: int = 512,
    rope_parameters: Mapping[str, Any] | None = None,
    tie_embeddings: bool = False,
    dtype: DtypeName = "float32",
    seed: int = 0,
    config_overrides: Mapping[str, Any] | None = None,
) -> Path:
    """Save a random target and its tokenizer in `folder`, and return `folder`.

    Eight layers give three different default aux layers. The weights are scaled so that greedy
    output varies from token to token. `config_overrides` are further config.json keys
    (`attention_bias`, `sliding_window`, ...). The tokenizer is `byte_tokenizer(vocab_size)`.
    """
    config = AutoConfig.for_model(
        architecture,
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        intermediate_size=intermediate_size,
        num_hidden_layers=num_layers,
        num_attention_heads=num_heads,
        num_key_value_heads=num_kv_heads,
        head_dim=head_dim or hidden_size // num_heads,
        max_position_embeddings=context_length,
        rope_parameters=dict(rope_parameters or {"rope_type": "default", "rope_theta": 10000.0}),
        tie_word_embeddings=tie_embeddings,
        bos_token_id=None,
        eos_token_id=EOS_ID,
        pad_token_id=EOS_ID,
        **{"sliding_window": None, **(config_overrides or {})},
    )
    _random_model(config, getattr(torch, dtype), seed).save_pretrained(folder)
    byte_tokenizer(vocab_size, context_length).save_pretrained(folder)
    return folder


def write_draft(
    folder: Path,
    *,
    target_folder: Path,
    draft_vocab_size: int = 128,
    num_aux: int = 3,
    aux_layer_ids: tuple[int, ...] | None = None,
    intermediate_size: int = 96,
    num_heads: int | None = None,
    num_kv_heads: int | None = None,
    head_dim: int | None = None,
    dtype: DtypeName = "float32",
    with_embed: bool = False,
    with_lm_head: bool = True,
    with_vocab_map: bool = True,
    seed: int = 1,
) -> Path:
    """Save a random EAGLE-3 head for `target_folder` in the published layout; return `folder`.

    The draft vocabulary is a random choice of target ids (d2t holds offsets, t2d the mask).
    `aux_layer_ids`, if given, are written to config.json in the *output* convention.
    """
    target = json.loads((target_folder / "config.json").read_text())
    hidden_size, vocab_size = target["hidden_size"], target["vocab_size"]
    heads = num_heads or target["num_attention_heads"]
    kv_heads = num_kv_heads or target["num_key_value_heads"]
    dim = head_dim or hidden_size // heads
    config: dict[str, Any] = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": hidden_size,
        "target_hidden_size": hidden_size,
        "intermediate_size": intermediate_size,
        "num_hidden_layers": 1,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": dim,
        "max_position_embeddings": target["max_position_embeddings"],
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "torch_dtype": dtype,
        "vocab_size": vocab_size,
        "draft_vocab_size": draft_vocab_size,
    }
    if aux_layer_ids is not None:
        config["eagle_config"] = {
            "eagle_aux_hidden_state_layer_ids": list(aux_layer_ids),
            "use_aux_hidden_state": True,
        }
    shapes = {
        "fc.weight": (hidden_size, num_aux * hidden_size),
        "midlayer.input_layernorm.weight": (hidden_size,),
        "midlayer.hidden_norm.weight": (hidden_size,),
        "midlayer.self_attn.q_proj.weight": (heads * dim, 2 * hidden_size),
        "midlayer.self_attn.k_proj.weight": (kv_heads * dim, 2 * hidden_size),
        "midlayer.self_attn.v_proj.weight": (kv_heads * dim, 2 * hidden_size),
        "midlayer.self_attn.o_proj.weight": (hidden_size, heads * dim),
        "midlayer.post_attention_layernorm.weight": (hidden_size,),
        "midlayer.mlp.gate_proj.weight": (intermediate_size, hidden_size),
        "midlayer.mlp.up_proj.weight": (intermediate_size, hidden_size),
        "midlayer.mlp.down_proj.weight": (hidden_size, intermediate_size),
        "norm.weight": (hidden_size,),
    }
    if with_embed:
        shapes["embed_tokens.weight"] = (vocab_size, hidden_size)
    if with_lm_head:
        shapes["lm_head.weight"] = (draft_vocab_size, hidden_size)
    generator = torch.Generator().manual_seed(seed)
    tensors = {
        name: _random_tensor(name, shape, generator).to(getattr(torch, dtype))
        for name, shape in shapes.items()
    }
    if with_vocab_map:
        tensors |= _vocab_map(vocab_size, draft_vocab_size, generator)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def byte_tokenizer(vocab_size: int, context_length: int = 512) -> PreTrainedTokenizerFast:
    """Byte-level BPE: ids 0-255 are the bytes, 256 is EOS, the rest pairs of printable ASCII.

    Any text round-trips, and any id decodes. Raises ValueError for sizes it can't have.
    """
    letters = sorted(chr(code) for code in range(ord("!"), ord("~") + 1))
    largest = _NUM_BYTES + 1 + len(letters) ** 2
    if not _NUM_BYTES < vocab_size <= largest:
        raise ValueError(f"vocab_size={vocab_size}: expected {_NUM_BYTES + 1} to {largest}")
    vocab = {symbol: byte for byte, symbol in enumerate(_byte_symbols())}
    vocab[EOS_TOKEN] = EOS_ID
    merges = list(islice(product(letters, letters), vocab_size - len(vocab)))
    vocab |= {a + b: len(vocab) + i for i, (a, b) in enumerate(merges)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        eos_token=EOS_TOKEN,
        pad_token=EOS_TOKEN,
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=context_length,
    )


def _byte_symbols() -> Iterable[str]:
    """The printable stand-in of each byte in byte-level BPE, in byte order."""
    shown = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = iter(range(0x100, 0x200))
    return [chr(byte if byte in shown else next(hidden)) for byte in range(_NUM_BYTES)]


def _random_model(config: PretrainedConfig, dtype: torch.dtype, seed: int) -> Any:  # noqa: ANN401
    with torch.random.fork_rng(devices=[]):
        model = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
            config, dtype=torch.float32
        )
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(_random_tensor(name, tuple(parameter.shape), generator))
    return model.to(dtype)


def _random_tensor(name: str, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Matrices keep the variance of what they multiply; norms lie around 1, biases around 0.

    Sharp queries and small embeddings make the context count: without them greedy decoding soon
    repeats one token, and a test of equal output proves little.
    """
    noise = torch.randn(shape, generator=generator)
    sharpness = 4.0 if "q_proj" in name or "q_norm" in name else 1.0
    if name.endswith("bias"):
        return 0.1 * noise
    if len(shape) == 1:
        return sharpness * (1 + 0.1 * noise)
    if "embed_tokens" in name:
        return 0.05 * noise
    scale: float = sharpness / shape[1] ** 0.5
    return scale * noise


def _vocab_map(
    vocab_size: int, draft_vocab_size: int, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    chosen = torch.randperm(vocab_size, generator=generator)[:draft_vocab_size].sort().values
    mask = torch.zeros(vocab_size, dtype=torch.bool)
    mask[chosen] = True
    return {"d2t": chosen - torch.arange(draft_vocab_size), "t2d": mask}
