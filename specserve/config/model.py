"""Group `model`: the target and where its draft lies."""

from typing import Annotated, Literal

from pydantic import Field

from specserve.config.strict import Auto, Count, StrictModel

Dtype = Literal["auto", "float32", "bfloat16", "float16"]


class ModelConfig(StrictModel):
    """The served model. Paths: a folder, or `bundled:NAME` for what ships with specserve."""

    name: Annotated[str, Field(min_length=1)] | Auto = Field(
        description="the name clients use; auto: the last part of the path"
    )
    path: str = Field(min_length=1, description="folder of the target checkpoint, or a hub id")
    draft_path: Annotated[str, Field(min_length=1)] | None = Field(
        description="the model's usual EAGLE-3 draft; null if none"
    )
    dtype: Dtype = Field(description="activation type of target and draft; auto: the checkpoint's")
    context_length: Count | Auto = Field(
        description="most tokens a request may hold, prompt and output; auto: the checkpoint's"
    )
    trust_remote_code: bool = Field(description="run Python code that the checkpoint brings")
