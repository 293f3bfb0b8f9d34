from pathlib import Path

from specserve.check.catalogue import find_catalogue
from specserve.config.compose import config_directory
from specserve.rule_ids import RuleId
from tests.check.conftest import MINE, write

CONF = config_directory()


def test_every_shipped_option_is_found_once() -> None:
    files = [
        file
        for file in CONF.glob("*/*.yaml")
        if not file.stem.startswith("_") and file.parent.name != "hydra"
    ]
    found = find_catalogue([])

    assert sorted(files) == sorted(option.file for option in found.options)
    assert {"baseline", "topk1_v2"} <= {o.name for o in found.options if o.is_experiment}


def test_a_users_options_come_beside_the_shipped_ones(configs: Path) -> None:
    found = find_catalogue([configs])

    assert configs / "experiment/good.yaml" == found.file_of("experiment", "good")
    assert CONF / "policy/always.yaml" == found.file_of("policy", "always")
    assert found.file_of("policy", "nothing") is None
    assert () == found.doubts


def test_what_is_made_for_other_files_is_no_option(configs: Path) -> None:
    write(configs, {"policy/_limits.yaml": MINE})

    assert find_catalogue([configs]).file_of("policy", "_limits") is None


def test_of_two_files_with_one_name_the_first_counts(configs: Path, tmp_path: Path) -> None:
    """As Hydra searches: conf/, then the folders in their order."""
    other = write(tmp_path / "other", {"policy/mine.yaml": MINE, "policy/off.yaml": "kind: off\n"})
    found = find_catalogue([configs, other])

    assert configs / "policy/mine.yaml" == found.file_of("policy", "mine")
    assert CONF / "policy/off.yaml" == found.file_of("policy", "off")
    assert {other / "policy/mine.yaml", other / "policy/off.yaml"} == {
        file for file, doubt in found.doubts if doubt.rule is RuleId.SHADOWED_FILE
    }


def test_a_folder_that_is_no_group_is_told(configs: Path) -> None:
    write(configs, {"policys/mine.yaml": MINE, "notes/readme.txt": "no config\n"})
    [(file, doubt)] = find_catalogue([configs]).doubts

    assert (configs / "policys", RuleId.FOLDER_OF_NO_GROUP) == (file, doubt.rule)
