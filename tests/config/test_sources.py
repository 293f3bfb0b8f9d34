from pathlib import Path

from specserve.config.compose import config_directory
from specserve.config.sources import read_sources


def test_files_stand_in_the_order_in_which_they_are_merged() -> None:
    """Groups in the order of the defaults list, then config.yaml, then the experiment."""
    files = read_sources(["+experiment=topk1_v2"]).files
    options = [file.option for file in files]

    assert ["model/demo", "quantization/none", "speculation/eagle3_topk1"] == options[:3]
    assert ["config", "experiment/topk1_v2"] == options[-2:]
    assert ("speculation",) == files[2].package
    assert () == files[-1].package
    assert all(file.path.is_file() for file in files)


def test_an_option_of_another_option_comes_before_it() -> None:
    options = [file.option for file in read_sources(["scheduler=sync"]).files]

    assert options.index("scheduler/overlap") < options.index("scheduler/sync")


def test_overrides_are_told_apart_by_what_they_do() -> None:
    sources = read_sources(
        ["policy=always", "server.port=1", "~model.name", "+a={b: 'c'}", "hydra.run.dir=x"]
    )

    assert {"policy": "policy=always"} == sources.choices
    assert [
        (("server", "port"), 1, False),
        (("model", "name"), None, True),
        (("a",), {"b": "c"}, False),
    ] == [(one.key, one.value, one.deletes) for one in sources.overrides]


def test_the_shipped_file_hides_a_users_file_of_its_name(tmp_path: Path) -> None:
    for name in ("always", "mine"):
        (tmp_path / "policy").mkdir(exist_ok=True)
        (tmp_path / f"policy/{name}.yaml").write_text("kind: always\n")
    found = {
        file.option: file.path
        for name in ("always", "mine")
        for file in read_sources([f"policy={name}"], [tmp_path]).files
    }

    assert config_directory() / "policy/always.yaml" == found["policy/always"]
    assert tmp_path / "policy/mine.yaml" == found["policy/mine"]
