"""The base of every configuration model: frozen, strict, and closed to unknown keys."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

Auto = Literal["auto"]


class StrictModel(BaseModel):
    """An unknown key is an error rather than a typo that does nothing; 3.0 and "4" are no integers.

    Models declare types, bounds and meaning; defaults live in conf/ only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
