import json
from pathlib import Path

import pytest

from specserve.errors import ConfigError
from specserve.schema import write_schemas
from specserve.schema.document import run_schema


def test_without_flags_the_schema_of_a_whole_run_is_printed() -> None:
    assert run_schema() == json.loads(write_schemas([]))


def test_what_is_written_is_told(tmp_path: Path) -> None:
    told = write_schemas(["--output", str(tmp_path / "s"), "--reference", str(tmp_path / "p.md")])

    assert f"wrote {tmp_path / 's/policy/schema.json'}" in told.splitlines()
    assert f"wrote {tmp_path / 'p.md'}" == told.splitlines()[-1]
    assert (tmp_path / "p.md").read_text().startswith("# Configuration")


@pytest.mark.parametrize("flag", ["--output", "--reference"])
def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path, flag: str) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match=f"{flag}=") as caught:
        write_schemas([flag, str(tmp_path / "file/inside")])

    assert "SPEC011" == caught.value.problems[0].rule


def test_help_shows_the_line_for_editors() -> None:
    assert "# yaml-language-server: $schema=schema.json" in write_schemas(["--help"])


def test_a_wrong_flag_is_refused() -> None:
    with pytest.raises(ConfigError, match="see `specserve schema --help`"):
        write_schemas(["--frobnicate"])
