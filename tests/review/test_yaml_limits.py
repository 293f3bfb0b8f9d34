import time
from pathlib import Path

import pytest

from specserve.config.compose import config_directory
from specserve.review.yaml_limits import (
    DEEPEST,
    LARGEST_BYTES,
    MOST_VALUES,
    YamlRefused,
    check_yaml,
)


def _bomb(levels: int, width: int) -> bytes:
    lines = [f"a0: &a0 [{','.join('1' * width)}]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels)]
    return "\n".join(lines).encode()


def _refused(contents: bytes) -> YamlRefused:
    with pytest.raises(YamlRefused) as raised:
        check_yaml(contents)
    return raised.value


@pytest.mark.parametrize(
    "file", sorted(config_directory().rglob("*.yaml")), ids=lambda file: file.stem
)
def test_every_shipped_file_may_be_read(file: Path) -> None:
    check_yaml(file.read_bytes())


def test_aliases_that_stay_small_may_be_read() -> None:
    check_yaml(b"a: &a {b: 1}\nc: [*a, *a]\nd: &a 2\ne: *a\n")
    check_yaml(b"")


@pytest.mark.parametrize("levels", [6, 60])
def test_aliases_that_explode_are_refused_at_once(levels: int) -> None:
    begin = time.process_time()
    refused = _refused(_bomb(levels, 9))

    assert f"at most {MOST_VALUES:,} values" in refused.expected
    assert time.process_time() - begin < 1


def test_the_line_is_told() -> None:
    assert 5 == _refused(_bomb(20, 9)).line
    assert 2 == _refused(b"a: 1\nb: \xff\n").line
    assert 3 == _refused(b"a: 1\nb: [\n").line


def test_size_depth_and_endless_values_have_limits() -> None:
    check_yaml(b"#" * LARGEST_BYTES)
    check_yaml(b"[" * DEEPEST + b"]" * DEEPEST)

    assert "bytes" in _refused(b"#" * (LARGEST_BYTES + 1)).found
    assert "nesting" in _refused(b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1)).expected
    assert "*a inside &a" == _refused(b"a: &a [1, *a]").found
    assert "at most" in _refused(b"[" + b"1," * MOST_VALUES + b"]").expected
