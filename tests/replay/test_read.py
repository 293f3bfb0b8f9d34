from pathlib import Path

import pytest

from specserve.errors import ConfigError
from specserve.replay.read import read_trace

DEFAULT = (0.9, 0.8)


def write(folder: Path, *lines: str) -> Path:
    path = folder / "load.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_trace_without_acceptance_has_the_default(tmp_path: Path) -> None:
    path = write(
        tmp_path, "time,running_decodes", "1700000000,3", "1700000002.5,4.0", "1700000003,0"
    )
    trace = read_trace(path, 2, DEFAULT)

    assert [(0, 2.5, 3, DEFAULT), (2.5, 3, 4, DEFAULT)] == [
        (s.begin, s.end, s.running_decodes, s.acceptance) for s in trace.spans
    ]
    assert str(path) == trace.source


def test_an_empty_acceptance_is_that_of_the_line_before(tmp_path: Path) -> None:
    path = write(tmp_path, "running_decodes,acceptance,time", "3,0.5,0", "0,,1", "4,,2", "3,0.4,3")
    trace = read_trace(path, 1, DEFAULT[:1])

    assert [(0.5,), (0.5,), (0.5,)] == [span.acceptance for span in trace.spans]


@pytest.mark.parametrize(
    ("lines", "place", "words"),
    [
        (["time,running_decodes", "0,1", "1,-1"], 3, "running_decodes a whole number from 0 on"),
        (["time,running_decodes", "0,1", "1,1.5"], 3, "running_decodes a whole number from 0 on"),
        (["time,running_decodes", "0,nan", "1,1"], 2, "running_decodes a number, found nan"),
        (["time,running_decodes", "0,1", "noon,1"], 3, "time a number, found 'noon'"),
        (["time,running_decodes", "0,1", "2,1", "1,1"], 4, "a time after 2, that of the line"),
        (["time,running_decodes", "0,1", "0,1"], 3, "a time after 0"),
        (["time,running_decodes,acceptance", "0,1,", "1,1,0.5"], 2, "acceptance in the first line"),
        (["time,running_decodes,acceptance", "0,1,50", "1,1,0.5"], 2, "acceptance from 0 to 1"),
    ],
)
def test_what_is_wrong_is_named_by_line(
    tmp_path: Path, lines: list[str], place: int, words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_trace(write(tmp_path, *lines), 2, DEFAULT)

    (problem,) = caught.value.problems
    assert f"{tmp_path / 'load.csv'}:{place}" == problem.value
    assert words in problem.expected


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("time,decodes", "columns time and running_decodes, found time, decodes"),
        ("time,running_decodes,gpu", "only acceptance .* found gpu"),
        ("time,running_decodes,acceptance,acceptance_1", "found acceptance, acceptance_1"),
    ],
)
def test_columns_that_say_no_load_are_refused(tmp_path: Path, header: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_trace(write(tmp_path, header, ",".join("1" * len(header.split(",")))), 2, DEFAULT)


def test_all_wrong_lines_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_trace(write(tmp_path, "time,running_decodes", "0,x", "y,1", "2,1"), 2, DEFAULT)

    assert [2, 3] == [int(str(p.value).rpartition(":")[2]) for p in caught.value.problems]


@pytest.mark.parametrize("lines", [["0,1"], ["0,0", "1,1"]])
def test_a_trace_in_which_nothing_decodes_is_refused(tmp_path: Path, lines: list[str]) -> None:
    with pytest.raises(ConfigError, match="two lines or more, and requests that decode"):
        read_trace(write(tmp_path, "time,running_decodes", *lines), 2, DEFAULT)
