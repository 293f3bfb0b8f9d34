import io
import json
import logging
import warnings
from collections.abc import Iterator

import pytest
import structlog

from specserve.config.logging import LoggingConfig
from specserve.log import configure


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def _json_lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def _configured(**changes: str) -> io.StringIO:
    stream = io.StringIO()
    given = {"level": "info", "format": "json", **changes}
    configure(LoggingConfig.model_validate(given), stream=stream)
    return stream


def test_an_event_and_its_fields_are_one_json_line() -> None:
    stream = _configured()
    structlog.get_logger("specserve.worker").info("phase.done", phase="kv_cache", seconds=1.5)

    [line] = _json_lines(stream)

    assert ("phase.done", "kv_cache", 1.5, "info", "specserve.worker") == tuple(
        line[key] for key in ("event", "phase", "seconds", "level", "logger")
    )
    assert str(line["time"]).endswith("Z")


def test_stdlib_logging_comes_out_in_the_same_form() -> None:
    """uvicorn and others log through it."""
    stream = _configured()
    logging.getLogger("uvicorn.error").warning(
        "port %d", 80, extra={"server": "x", "color_message": "y"}
    )

    [line] = _json_lines(stream)

    assert ("port 80", "warning", "uvicorn.error", "x") == tuple(
        line[key] for key in ("event", "level", "logger", "server")
    )
    assert "color_message" not in line


@pytest.mark.parametrize(
    ("level", "events"),
    [("debug", ["a", "b", "c"]), ("info", ["b", "c"]), ("warning", ["c"]), ("error", [])],
)
def test_the_level_holds_for_both(level: str, events: list[str]) -> None:
    stream = _configured(level=level)
    for log in (structlog.get_logger("own"), logging.getLogger("stdlib")):
        log.debug("a")
        log.info("b")
        log.warning("c")

    assert events * 2 == [line["event"] for line in _json_lines(stream)]


def test_an_exception_keeps_its_traceback() -> None:
    stream = _configured()
    try:
        raise ValueError("broken")
    except ValueError:
        structlog.get_logger("x").exception("failed")

    [line] = _json_lines(stream)

    assert "broken" in json.dumps(line["exception"])


def test_people_get_a_line_without_colours_in_a_file() -> None:
    stream = _configured(format="console")
    structlog.get_logger("x").info("phase.done", phase="kv_cache")

    assert "phase.done" in stream.getvalue()
    assert "phase=kv_cache" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_people_get_colours_on_a_terminal() -> None:
    terminal = _Terminal()
    configure(LoggingConfig(level="info", format="console"), stream=terminal)
    structlog.get_logger("x").info("phase.done")

    assert "\x1b[" in terminal.getvalue()


def test_people_get_a_plain_traceback() -> None:
    stream = _configured(format="console")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            raise ValueError("broken")
        except ValueError:
            structlog.get_logger("x").exception("failed")

    assert "ValueError: broken" in stream.getvalue()


def test_configuring_twice_does_not_repeat_lines() -> None:
    _configured()
    stream = _configured()
    structlog.get_logger("x").info("once")

    assert 1 == len(stream.getvalue().splitlines())
