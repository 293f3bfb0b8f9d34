"""Group `server`: the HTTP side."""

from typing import Annotated

from pydantic import Field

from specserve.config.strict import StrictModel


class ServerConfig(StrictModel):
    """OpenAI-compatible HTTP."""

    host: str = Field(min_length=1, description="127.0.0.1 keeps it on this machine")
    port: int = Field(ge=0, le=65535, description="0 takes a free one and prints it")
    api_key: Annotated[str, Field(min_length=1)] | None = Field(
        description="demanded from clients; give it as ${oc.env:NAME}"
    )
    max_body_bytes: int = Field(ge=1024)
    drain_seconds: float = Field(ge=0, description="SIGTERM: how long running requests may finish")
