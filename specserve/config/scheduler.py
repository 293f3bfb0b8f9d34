"""Group `scheduler`: how steps follow each other, and how much is admitted."""

from typing import Literal

from pydantic import Field

from specserve.config.strict import Auto, Count, StrictModel


class SchedulerConfig(StrictModel):
    """`overlap` finishes step i-1 on the host while the device runs step i; `sync` takes turns."""

    kind: Literal["overlap", "sync"]
    max_running_requests: int = Field(ge=1, le=4096, description="admission limit")
    max_queued_requests: int = Field(ge=0, description="beyond it a request is refused with 429")
    prefill_chunk_tokens: int = Field(
        ge=16, description="most prompt tokens between two decode rounds"
    )
    max_kv_tokens: Count | Auto = Field(
        description="KV budget over all running requests; auto: limit times context"
    )
    step_limit_seconds: float = Field(
        gt=0,
        description="a step (one round, or one chunk of a prompt) that lasts longer hangs: the "
        "worker is killed, and the run ends with exit code 4",
    )
