"""Group `build`: time limits of the build phases, and the self test."""

from pydantic import Field

from specserve.config.strict import StrictModel


class PhaseLimits(StrictModel):
    """Seconds after which a phase counts as hung; the worker is then killed and named."""

    attributes: float = Field(gt=0)
    load_target: float = Field(gt=0)
    load_draft: float = Field(gt=0)
    kv_cache: float = Field(gt=0)
    attention_backend: float = Field(gt=0)
    cuda_graphs: float = Field(gt=0)
    self_test: float = Field(gt=0)


class BuildConfig(StrictModel):
    """How the worker is built."""

    limit_seconds: PhaseLimits
    self_test_tokens: int = Field(ge=4, le=1024, description="tokens generated in each mode")
