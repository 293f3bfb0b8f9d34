"""What works but probably is not meant: settings without effect, an open door."""

import ipaddress

from specserve.config.cuda_graph import CudaGraphConfig
from specserve.config.policy import BatchThresholdPolicy, OffPolicy
from specserve.config.run import RunConfig
from specserve.config.speculation import NoSpeculation


def config_warnings(config: RunConfig) -> tuple[str, ...]:
    """One sentence for each doubt; empty when there is none."""
    return tuple(
        warning
        for warning in (
            _threshold_never_acts(config),
            _draft_never_used(config),
            _open_to_the_network(config),
            _graph_sizes_unused(config.cuda_graph),
        )
        if warning is not None
    )


def _threshold_never_acts(config: RunConfig) -> str | None:
    policy, limit = config.policy, config.scheduler.max_running_requests
    if not isinstance(policy, BatchThresholdPolicy) or policy.disable_above < limit:
        return None
    return (
        f"policy.disable_above={policy.disable_above} never acts: "
        f"scheduler.max_running_requests={limit} admits no more than that"
    )


def _draft_never_used(config: RunConfig) -> str | None:
    if isinstance(config.speculation, NoSpeculation) or not isinstance(config.policy, OffPolicy):
        return None
    return (
        f"speculation={config.speculation.kind} with policy=off: "
        "the draft is loaded and stays unused until the policy is changed"
    )


def _open_to_the_network(config: RunConfig) -> str | None:
    if config.server.api_key is not None or _is_loopback(config.server.host):
        return None
    return (
        f"server.host={config.server.host} without server.api_key: "
        "whoever reaches this machine can use the server"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return host == "localhost"


def _graph_sizes_unused(cuda_graph: CudaGraphConfig) -> str | None:
    if cuda_graph.kind != "off" or cuda_graph.batch_sizes == "auto":
        return None
    return "cuda_graph.batch_sizes has no effect: cuda_graph.kind is off"
