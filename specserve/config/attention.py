"""Group `attention`: the attention back-end."""

from typing import Literal

from specserve.config.strict import StrictModel


class AttentionConfig(StrictModel):
    """`auto` lets the plan choose what the engine has, and keeps the reason."""

    kind: Literal["auto", "sdpa", "fa3", "triton", "flashinfer"]
