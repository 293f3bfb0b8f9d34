"""What a draft model that is no EAGLE-3 head takes with engine=sglang: weights, KV per token."""

from dataclasses import replace

from specserve.checkpoint.architecture import Dimensions, read_dimensions
from specserve.checkpoint.header import CheckpointFacts
from specserve.config.run import RunConfig
from specserve.config.speculation import MtpSpeculation, StandaloneSpeculation
from specserve.plan.drafters import KEY, bundled_layers
from specserve.plan.execution import Device
from specserve.plan.holding import holding_of
from specserve.plan.values import DraftPlan
from specserve.plan.weights import estimate, stored_weight_bytes


def drafter_size(config: RunConfig, draft: DraftPlan, target: CheckpointFacts) -> Dimensions:
    """The draft's dimensions; of layers that the target brings, as many as it says."""
    size = read_dimensions(draft.config, key=KEY, path=draft.path)
    if _is_bundled(config):
        return replace(size, num_layers=bundled_layers(target))
    return size


def drafter_weight_bytes(
    config: RunConfig,
    draft: DraftPlan,
    facts: CheckpointFacts | None,
    size: Dimensions,
    tensor_parallel: int,
    device: Device,
) -> int:
    """Bytes on each device: from the headers, else from the config.

    All but a standalone model share embedding and lm_head with the target, and join the target's
    hidden state with the token's embedding in one more matrix.
    """
    holding = holding_of(draft, device)
    if facts is not None and facts.tensors is not None and not _is_bundled(config):
        return stored_weight_bytes(facts.tensors, holding, size, tensor_parallel)
    if isinstance(config.speculation, StandaloneSpeculation):
        return estimate(size, holding, tensor_parallel)
    layers = replace(size, vocab_size=0, tie_word_embeddings=True)
    if layers.moe is not None:  # what it brings are layers like its last ones
        layers = replace(layers, moe=replace(layers.moe, num_dense_layers=0))
    joining = holding.matrix_bytes(2 * size.hidden_size**2, size.hidden_size)
    return estimate(layers, holding, tensor_parallel) + joining


def _is_bundled(config: RunConfig) -> bool:
    return isinstance(config.speculation, MtpSpeculation) and config.speculation.draft.path is None
