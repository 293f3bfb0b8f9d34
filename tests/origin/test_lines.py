from pathlib import Path

from specserve.origin.lines import DefaultsEntry, Leaf, read_config_file

FILE = """\
# @package _global_
defaults:
  - overlap
  - override /policy: "off"
  - server@extra: default
  - _self_
a:
  b: 1   # one
  c: [1,
      2]
hydra: {job: {name: x}}
d: {}
"""


def test_leaves_have_the_line_of_their_key(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(FILE)
    read = read_config_file(tmp_path / "x.yaml")

    assert (
        Leaf(key=("a", "b"), value=1, line=8),
        Leaf(key=("a", "c"), value=[1, 2], line=9),
        Leaf(key=("d",), value={}, line=12),
    ) == read.leaves


def test_entries_of_the_defaults_list_choose_options(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(FILE)

    assert (
        DefaultsEntry(group="policy", option="off", overrides=True, line=4),
        DefaultsEntry(group="server", option="default", overrides=False, line=5),
    ) == read_config_file(tmp_path / "x.yaml").choices


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("# nothing\n")
    read = read_config_file(tmp_path / "x.yaml")

    assert ((), ()) == (read.leaves, read.choices)
