"""What must hold for a target before its weights are read. Pure."""

from specserve.checkpoint.architecture import (
    Dimensions,
    architecture_name,
    supported_names,
)
from specserve.checkpoint.computation import computation_problems
from specserve.checkpoint.dtype import is_activation_dtype, stored_dtype
from specserve.checkpoint.header import CheckpointFacts
from specserve.checkpoint.quantization import stored_quantization, target_problems
from specserve.checkpoint.tensors import compare, layout, target_tensors
from specserve.config.run import RunConfig
from specserve.config.speculation import Eagle3Speculation
from specserve.errors import Problem
from specserve.rule_ids import RuleId

TARGET_KEY = "model.path"


def architecture_problems(config: RunConfig, target: CheckpointFacts) -> list[Problem]:
    """Whether the engine can serve the target, and take auxiliary hidden states from it.

    SGLang serves architectures beyond the table, but then without EAGLE-3.
    """
    engine = config.engine.kind
    name = architecture_name(target.config)
    if name in supported_names(engine):
        return []
    if engine == "sglang" and not isinstance(config.speculation, Eagle3Speculation):
        return []
    elsewhere = name in supported_names("sglang")
    fix = "set engine=sglang" if elsewhere else f"set {TARGET_KEY} to a supported model"
    if engine == "sglang":
        fix += ", or speculation=off policy=off"
    return [
        Problem(
            rule=RuleId.UNSUPPORTED_ARCHITECTURE,
            key=TARGET_KEY,
            value=target.path,
            expected=f"an architecture that engine={engine} supports with EAGLE-3 "
            f"({', '.join(supported_names(engine))}), found {name}",
            fix=fix,
        )
    ]


def target_rules(config: RunConfig, target: CheckpointFacts, size: Dimensions) -> list[Problem]:
    """Every problem of a target whose architecture and dimensions are sound, context aside."""
    stored = stored_quantization(target.config)
    problems = [
        *target_problems(config.quantization, stored, size),
        *_dtype_problems(config, target),
        *_tokenizer_problems(target, size),
    ]
    if config.engine.kind == "torch":
        problems += computation_problems(target.config, key=TARGET_KEY, path=target.path)
        # A quantized checkpoint has other tensors, and is refused above.
        problems += _tensor_problems(target, size) if stored is None else []
    return problems


def _dtype_problems(config: RunConfig, target: CheckpointFacts) -> list[Problem]:
    dtype = stored_dtype(target)
    if config.model.dtype != "auto" or is_activation_dtype(dtype):
        return []
    return [
        Problem(
            rule=RuleId.NO_ACTIVATION_DTYPE,
            key="model.dtype",
            value="auto",
            expected="a checkpoint in float32, bfloat16 or float16, "
            f"found {dtype or 'no dtype in config.json'}",
            fix="set model.dtype=bfloat16",
        )
    ]


def _tokenizer_problems(target: CheckpointFacts, size: Dimensions) -> list[Problem]:
    if not target.has_tokenizer:
        return [
            Problem(
                rule=RuleId.NO_TOKENIZER,
                key=TARGET_KEY,
                value=target.path,
                expected="a tokenizer beside the weights (tokenizer.json), found none",
                fix=f"put the model's tokenizer files beside the weights of {target.path}",
            )
        ]
    if target.tokenizer_vocab_size is not None and target.tokenizer_vocab_size > size.vocab_size:
        return [
            Problem(
                rule=RuleId.TOKENIZER_OF_ANOTHER_MODEL,
                key=TARGET_KEY,
                value=target.path,
                expected=f"a tokenizer with ids below vocab_size {size.vocab_size}, "
                f"found {target.tokenizer_vocab_size}: it belongs to another model",
                fix=f"put the model's own tokenizer files beside the weights of {target.path}",
            )
        ]
    return []


def _tensor_problems(target: CheckpointFacts, size: Dimensions) -> list[Problem]:
    if target.tensors is None:
        return []
    difference = compare(target_tensors(layout(target.config), size), target.tensors)
    if not difference:
        return []
    return [
        Problem(
            rule=RuleId.TARGET_TENSORS,
            key=TARGET_KEY,
            value=target.path,
            expected=f"exactly the tensors that config.json implies; {difference}",
            fix="download the checkpoint again, with config.json and weights of one revision",
        )
    ]
