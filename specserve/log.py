"""Set up structlog once, at an entry point: lines for people or JSON, stdlib logging included."""

import logging
import sys
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor

from specserve.config.logging import LoggingConfig


def configure(config: LoggingConfig, *, stream: TextIO | None = None) -> None:
    """Send every log line of the process to `stream` (stderr), from `config.level` up.

    Called by entry points only; everything else just logs. Colours only on a terminal.
    """
    out = sys.stderr if stream is None else stream
    level = logging.getLevelNamesMapping()[config.level.upper()]
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_rendering(config, colors=out.isatty()),
            ],
            foreign_pre_chain=_SHARED,
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    structlog.configure(
        processors=[*_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        # Loggers at module level are made before this runs.
        cache_logger_on_first_use=False,
    )


def _without_color_message(_: object, __: str, event: EventDict) -> EventDict:
    """uvicorn sends its message a second time, in colour."""
    event.pop("color_message", None)
    return event


_SHARED: tuple[Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.stdlib.ExtraAdder(),
    _without_color_message,
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    structlog.processors.StackInfoRenderer(),
)


def _rendering(config: LoggingConfig, *, colors: bool) -> list[Processor]:
    match config.format:
        case "json":
            return [
                structlog.processors.dict_tracebacks,
                structlog.processors.JSONRenderer(sort_keys=False),
            ]
        case "console":
            return [
                structlog.dev.ConsoleRenderer(
                    colors=colors,
                    sort_keys=False,  # a phase's name comes first, its details last
                    timestamp_key="time",
                    exception_formatter=structlog.dev.plain_traceback,
                )
            ]
