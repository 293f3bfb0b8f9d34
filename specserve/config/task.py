"""Group `task`: what a run does once its worker is built."""

from typing import Literal

from specserve.config.strict import StrictModel


class TaskConfig(StrictModel):
    """`serve` until told to stop."""

    kind: Literal["serve"]
