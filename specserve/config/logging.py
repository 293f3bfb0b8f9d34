"""Group `logging`: what goes to stderr."""

from typing import Literal

from specserve.config.strict import StrictModel


class LoggingConfig(StrictModel):
    """`console` for people, `json` for machines; the run directory always gets JSON lines."""

    level: Literal["debug", "info", "warning", "error"]
    format: Literal["console", "json"]
