from pathlib import Path

import pytest

from specserve.errors import ConfigError
from specserve.replay.records import Record, read_records


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "load"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_csv_and_json_lines_say_the_same(tmp_path: Path) -> None:
    expected = [Record(2, {"a": 1, "b": None}), Record(4, {"a": 2.5, "b": "x"})]

    assert expected == read_records(write(tmp_path, "a , b\n1,\n\n2.5, x\n"))
    assert expected == read_records(
        write(tmp_path, '\n{"a": 1, "b": null}\n  \n{"b": "x", "a": 2.5}\n')
    )


def test_spreadsheets_write_a_byte_order_mark_and_other_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path, b"\xef\xbb\xbfa,b\r\n1,2\r\n")

    assert [Record(2, {"a": 1, "b": 2})] == read_records(path)


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        ("a,b\n1,2\n3\n", 3, "2 cells as in the header, found 1"),
        ("a,a\n1,2\n", 1, "each column once, found a twice"),
        ('{"a": 1}\n{"a": \n', 2, "one JSON object, but at column"),
        ('{"a": 1}\n[1]\n', 2, "one JSON object, found"),
        ('{"a": 1}\n{"b": 1}\n', 2, "the columns of line 1, a; found b"),
        (b"a,b\n1,2\n\xff\xfe1,2", 3, "UTF-8, found the byte 0xff"),
        ("a,b\n1,2".encode("utf-16"), 1, "UTF-8, found the byte 0xff"),
    ],
)
def test_what_is_wrong_is_named_by_line(
    tmp_path: Path, content: str | bytes, line: int, words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_records(write(tmp_path, content))

    (problem,) = caught.value.problems
    assert ("--trace", f"{tmp_path / 'load'}:{line}") == (problem.key, problem.value)
    assert words in problem.expected


@pytest.mark.parametrize("content", ["", "\n \n", "time,running_decodes\n"])
def test_a_file_without_lines_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(ConfigError, match="found none"):
        read_records(write(tmp_path, content))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere.*No such file"):
        read_records(tmp_path / "nowhere")


def test_of_very_many_problems_the_first_are_told_and_how_many_more(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_records(write(tmp_path, "a,b\n" + "1\n" * 100))

    assert 9 == len(caught.value.problems)
    assert "92 further problems" in caught.value.problems[-1].expected
