import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from specserve.checkpoint.header import CheckpointFacts, read_checkpoint, weight_files
from specserve.errors import ConfigError, Problem


@pytest.fixture
def folder(tmp_path: Path, folders: tuple[Path, Path]) -> Path:
    """A copy of the draft that a test may damage."""
    return Path(shutil.copytree(folders[1], tmp_path / "copy"))


def problem(folder: Path, key: str = "model.path") -> Problem:
    with pytest.raises(ConfigError) as caught:
        read_checkpoint(folder, key=key)
    [found] = caught.value.problems
    return found


def shard(folder: Path) -> dict[str, str]:
    """Split model.safetensors into two shards with an index; return the weight map."""
    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    weight_map: dict[str, str] = {}
    for number, part in enumerate((names[:5], names[5:]), start=1):
        file = f"model-0000{number}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / file)
        weight_map |= dict.fromkeys(part, file)
    (folder / "model.safetensors").unlink()
    write_index(folder, weight_map)
    return weight_map


def write_index(folder: Path, weight_map: object) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def test_facts_are_those_of_the_files(folders: tuple[Path, Path], draft: CheckpointFacts) -> None:
    stored = load_file(folders[1] / "model.safetensors")

    assert {name: array.shape for name, array in stored.items()} == {
        name: header.shape for name, header in (draft.tensors or {}).items()
    }
    assert tuple(stored["d2t"].tolist()) == draft.d2t
    assert tuple(stored["t2d"].tolist()) == draft.t2d
    assert sum(array.nbytes for array in stored.values()) == draft.weight_bytes
    assert json.loads((folders[1] / "config.json").read_text()) == draft.config


def test_the_targets_tokenizer_and_generation_config_are_seen(target: CheckpointFacts) -> None:
    assert (True, 320) == (target.has_tokenizer, target.tokenizer_vocab_size)
    assert 256 == target.generation_config["eos_token_id"]


def test_shards_give_the_same_tensors_as_one_file(folder: Path, draft: CheckpointFacts) -> None:
    shard(folder)

    sharded = read_checkpoint(folder)

    assert (draft.tensors, draft.d2t, draft.t2d) == (sharded.tensors, sharded.d2t, sharded.t2d)
    assert ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"] == [
        path.name for path in weight_files(folder)
    ]


def test_facts_survive_json(draft: CheckpointFacts) -> None:
    assert draft == CheckpointFacts.model_validate_json(draft.model_dump_json())


def test_the_hash_covers_config_and_headers_but_no_weights(folder: Path) -> None:
    def digest() -> str:
        return read_checkpoint(folder).sha256

    before = digest()
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors | {"norm.weight": tensors["norm.weight"] * 2}, folder / "model.safetensors")
    rewritten = digest()
    save_file(tensors | {"norm.weight": tensors["norm.weight"][:3]}, folder / "model.safetensors")
    reshaped = digest()
    (folder / "config.json").write_text("{}")

    assert 3 == len({rewritten, reshaped, digest()})
    assert 64 == len(before)


def test_a_vocabulary_map_of_another_kind_is_left_to_the_rules(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors |= {"d2t": np.zeros(4, np.float32), "t2d": np.zeros((2, 2), np.bool_)}
    save_file(tensors, folder / "model.safetensors")

    facts = read_checkpoint(folder)

    assert (None, None) == (facts.d2t, facts.t2d)


def test_32_bit_offsets_are_read_too(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors | {"d2t": np.array([-1, 7], np.int32)}, folder / "model.safetensors")

    assert (-1, 7) == read_checkpoint(folder).d2t


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def put(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    os.truncate(path, path.stat().st_size - 1)


def loop(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("config.json")


def pipe(folder: Path) -> None:
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")


def only_pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def lose_a_shard(folder: Path) -> None:
    shard(folder)
    (folder / "model-00002-of-00002.safetensors").unlink()


def index_more(folder: Path) -> None:
    write_index(folder, shard(folder) | {"more.weight": "model-00001-of-00002.safetensors"})


def index_less(folder: Path) -> None:
    weight_map = shard(folder)
    write_index(folder, {k: v for k, v in weight_map.items() if k != "norm.weight"})


def index_elsewhere(folder: Path) -> None:
    write_index(folder, dict.fromkeys(shard(folder), "../other/model.safetensors"))


def index_nothing(folder: Path) -> None:
    shard(folder)
    write_index(folder, {})


LFS = b"version https://git-lfs.github.com/spec/v1\n"


@pytest.mark.parametrize(
    ("damage", "expected", "fix"),
    [
        (remove("config.json"), "config.json to be a readable file, found no such file", "downl"),
        (put("config.json", b"{"), "config.json to be a JSON object, found JSON that", "downl"),
        (put("config.json", b"[]"), "found JSON of another type (list)", "download"),
        (put("config.json", b'{"a": "\xff"}'), "config.json to be a JSON object", "download"),
        (loop, "config.json to be a readable file", "download"),
        (pipe, "config.json to be a readable file", "download"),
        (put("generation_config.json", b"{"), "generation_config.json to be a JSON", "download"),
        (put("tokenizer.json", b"{}"), "tokenizer.json to be a tokenizer of", "download"),
        (remove("model.safetensors"), "found neither", "hf download"),
        (only_pickled, "found pytorch_model.bin: pickled weights", "convert"),
        (truncate, "model.safetensors to be a whole safetensors file", "download"),
        (put("model.safetensors", LFS), "a git-lfs pointer", "git lfs pull"),
        (lose_a_shard, "missing: model-00002-of-00002.safetensors", "download the missing files"),
        (index_more, "model-00001-of-00002.safetensors misses 'more.weight'", "download"),
        (index_less, "holds beyond the index 'norm.weight'", "download"),
        (index_elsewhere, "files in its folder, not '../other/model.safetensors'", "download"),
        (index_nothing, "an object with weight_map", "download"),
    ],
)
def test_a_damaged_folder_is_refused_by_file_and_with_a_fix(
    folder: Path, damage: Callable[[Path], object], expected: str, fix: str
) -> None:
    damage(folder)

    found = problem(folder, key="speculation.draft.path")

    assert ("speculation.draft.path", str(folder)) == (found.key, found.value)
    assert expected in found.expected
    assert fix in found.fix


@pytest.mark.parametrize(
    ("name", "found_there"),
    [
        ("nowhere", "nothing there"),
        ("a\0b", "nothing there"),
        ("x" * 5000, "File name too long"),
        ("loop", "nothing there"),
    ],
    ids=["absent", "null", "long", "loop"],
)
def test_a_folder_that_is_not_there_is_refused_with_the_download_command(
    tmp_path: Path, name: str, found_there: str
) -> None:
    (tmp_path / "loop").symlink_to("loop")

    found = problem(tmp_path / name)

    assert f"found {found_there}" in found.expected
    assert "hf download ORGANISATION/NAME --local-dir" in found.fix


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("")

    assert "found a file" in problem(tmp_path / "model").expected


@settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from(
        ["config.json", "generation_config.json", "tokenizer.json", "model.safetensors"]
    ),
    content=st.binary(max_size=100) | st.text(max_size=50).map(lambda text: text.encode()),
)
def test_random_bytes_in_any_file_give_facts_or_config_error(
    folder: Path, folders: tuple[Path, Path], name: str, content: bytes
) -> None:
    (folder / name).write_bytes(content)

    try:
        read_checkpoint(folder)
        named = name
    except ConfigError as error:
        named = error.problems[0].expected
    finally:
        shutil.rmtree(folder)
        shutil.copytree(folders[1], folder)
    assert name in named


def test_a_checkpoint_of_two_hundred_gigabytes_is_read_by_its_header_alone(
    tmp_path: Path, folders: tuple[Path, Path]
) -> None:
    """The file is sparse: reading its data would take minutes."""
    names = [f"model.layers.{i}.mlp.up_proj.weight" for i in range(100)]
    size = 2_000_000_000
    header = {
        name: {"dtype": "BF16", "shape": [size // 2], "data_offsets": [i * size, (i + 1) * size]}
        for i, name in enumerate(names)
    }
    raw = json.dumps(header).encode()
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.write(len(raw).to_bytes(8, "little") + raw)
        file.truncate(8 + len(raw) + len(names) * size)
    (tmp_path / "config.json").write_text("{}")

    facts = read_checkpoint(tmp_path)

    assert 200_000_000_000 == facts.weight_bytes
