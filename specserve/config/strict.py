"""The base of every configuration model: frozen, strict, and closed to unknown keys."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Auto = Literal["auto"]
Count = Annotated[int, Field(ge=1)]


class StrictModel(BaseModel):
    """An unknown key is an error rather than a typo that does nothing; 3.0 and "4" are no integers.

    Models declare types, bounds and meaning; defaults live in conf/ only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
