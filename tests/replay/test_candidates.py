from pathlib import Path

import pytest

from specserve.calibration.read import read_calibration
from specserve.calibration.table import Calibration
from specserve.errors import ConfigError
from specserve.replay.candidates import Candidate, read_candidates


@pytest.fixture
def read(calibration_file: Path, calibration: Calibration, config_dir: Path) -> "Reader":
    return Reader(calibration_file, calibration, config_dir)


class Reader:
    def __init__(self, path: Path, calibration: Calibration, config_dir: Path) -> None:
        self.path = path
        self.calibration = calibration
        self.config_dir = config_dir

    def __call__(self, *overrides: str) -> list[Candidate]:
        return read_candidates(overrides, [self.config_dir], self.path, self.calibration)


def test_one_policy_is_named_by_its_kind_and_built_as_calibrated(read: Reader) -> None:
    (candidate,) = read("policy=batch_threshold", "policy.disable_above=40")

    assert "batch_threshold" == candidate.name
    assert 3 == candidate.num_steps
    assert 40 == candidate.config.policy.model_dump()["disable_above"]


def test_an_experiment_brings_its_own_speculation(read: Reader) -> None:
    (candidate,) = read("+experiment=topk1_v2", "speculation.num_steps=2")

    assert (2, "batch_threshold") == (candidate.num_steps, candidate.config.policy.kind)


def test_commas_compare_and_names_tell_what_differs(read: Reader) -> None:
    candidates = read("policy=off,always")
    assert ["off", "always"] == [candidate.name for candidate in candidates]

    candidates = read("policy=batch_threshold", "policy.disable_above=20,40")
    assert ["disable_above=20", "disable_above=40"] == [c.name for c in candidates]


def test_a_key_is_for_the_policies_that_have_it(read: Reader) -> None:
    candidates = read("policy=off,batch_threshold,early", "policy.disable_above=20,40")

    assert [
        "off",
        "batch_threshold disable_above=20",
        "batch_threshold disable_above=40",
        "early",
    ] == [candidate.name for candidate in candidates]


def test_a_key_that_no_policy_has_is_an_error(read: Reader) -> None:
    with pytest.raises(ConfigError, match=r"policy\.disable_abov="):
        read("policy=off,batch_threshold", "policy.disable_abov=20")


def test_a_wrong_value_is_told_once_for_all_that_share_it(read: Reader) -> None:
    with pytest.raises(ConfigError) as caught:
        read("policy=off,always", "server.port=x")

    assert ["server.port"] == [problem.key for problem in caught.value.problems]


def test_a_cost_model_without_a_calibration_decides_by_this_one(read: Reader) -> None:
    (candidate,) = read("policy=mine")

    assert read.calibration == candidate.calibration
    assert str(read.path) == candidate.config.policy.model_dump()["calibration"]
    assert candidate.policy() is not candidate.policy()


def test_a_calibration_of_its_own_stays(read: Reader, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_bytes(read.path.read_bytes().replace(b'"verified": 1000', b'"verified": 2000'))
    candidates = read("policy=off,mine", f"policy.calibration={other}")

    assert read_calibration(str(other)) == candidates[1].calibration


def test_a_tree_is_not_replayed_by_the_times_of_a_chain(read: Reader) -> None:
    with pytest.raises(ConfigError, match=r"speculation\.topk=4: expected 1"):
        read("speculation=eagle3_topk4", "policy=always")


def test_the_usual_rules_hold(read: Reader) -> None:
    with pytest.raises(ConfigError, match=r"policy\.resume_at=6: expected at most"):
        read("policy=batch_threshold", "policy.disable_above=4")
    with pytest.raises(ConfigError, match=r"policy='alway'.*policy=always"):
        read("policy=off,alway")
