import json
from collections.abc import Callable

from specserve.replay.comparison import Comparison
from specserve.replay.document import document


def test_everything_of_a_comparison_survives_json(compared: Callable[..., Comparison]) -> None:
    comparison = compared([(0, 1), (2, 64), (4, 0)], "policy=batch_threshold,off")
    told = json.loads(json.dumps(document(comparison)))

    assert [(0, 2, 1), (2, 4, 64)] == [
        (span["begin"], span["end"], span["running_decodes"]) for span in told["load"]["spans"]
    ]
    assert ["batch_threshold", "off"] == [policy["name"] for policy in told["policies"]]
    assert 8 == told["policies"][0]["policy"]["disable_above"]
    assert "policy=batch_threshold" in told["policies"][0]["overrides"]
    stays = told["policies"][0]["stays"]
    assert [3, 0] == [stay["num_steps"] for stay in stays]
    assert "64 running decodes are more than disable_above=8" == stays[1]["reason"]
    assert [comparison.statics[k].tokens for k in (0, 1, 2, 3)] == [
        setting["tokens"] for setting in told["statics"]
    ]
    assert 1 == told["oracle"]["share_of_oracle"]
    assert "a made-up GPU" == told["calibration"]["provenance"]["device"]
