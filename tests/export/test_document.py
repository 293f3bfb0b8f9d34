import json

import yaml

from specserve.config.policy import AlwaysPolicy
from specserve.export.document import json_text, launch_command, yaml_text
from specserve.export.engine import Attachment, Translation
from specserve.export.losses import DROPPABLE
from specserve.export.run import ENGINES, translate
from tests.export.runs import run_with, threshold

SETTINGS = {"a-flag": True, "path": "/x: y#z", "sizes": (1, 2), "nested": {"table": [(1, 8, 3)]}}


def test_the_yaml_reads_back_with_one_range_a_line() -> None:
    text = yaml_text(["one", "two"], SETTINGS)

    assert text.startswith("# one\n# two\na-flag: true\n")
    assert "  - [1, 8, 3]\n" in text
    assert {
        "a-flag": True,
        "path": "/x: y#z",
        "sizes": [1, 2],
        "nested": {"table": [[1, 8, 3]]},
    } == yaml.safe_load(text)


def test_the_json_reads_back_with_one_slot_a_line() -> None:
    text = json_text(['with "quotes"', "x"], Attachment(key="k", content={"1": {"c": [3]}}))

    assert '\n  "1": {"c": [3]}\n' in text
    assert {"_comment": ['with "quotes"', "x"], "1": {"c": [3]}} == json.loads(text)


def test_the_command_carries_the_environment() -> None:
    translation = Translation(settings={}, environment={"X": "1"}, attachment=None)

    assert "X=1 vllm serve MODEL --config f.yaml" == launch_command(
        ENGINES["vllm"], translation, "f.yaml"
    )


def test_the_header_says_what_was_left_out_and_whose_rule_holds() -> None:
    run = run_with(threshold(8, resume=6, while_off="refill"))
    _, header = translate(run, ENGINES["tensorrt-llm"], DROPPABLE)
    text = "\n".join(header.lines("COMMAND"))

    assert "for TensorRT-LLM (rule of pull request 10860" in text
    assert "policy=batch_threshold: 6 steps at 1 to 8; 0 steps at 9 and more." in text
    assert "Left out (--drop hysteresis): policy.resume_at=6; " in text
    assert "Left out (--drop while_off): policy.while_off=refill; while off it does what " in text
    assert "prefills included" in text


def test_what_counts_as_the_batch_matters_only_if_the_depth_depends_on_it() -> None:
    _, header = translate(run_with(AlwaysPolicy(kind="always")), ENGINES["vllm"], ())
    text = "\n".join(header.lines("COMMAND"))

    assert "policy=always: 6 steps at 1 and more." in text
    assert "counts running decodes" not in text
