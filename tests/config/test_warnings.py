import pytest

from specserve.config.compose import compose_tree
from specserve.config.validate import parse_run
from specserve.config.warnings import config_warnings


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["+experiment=topk1_v2", "policy.disable_above=16"], "never acts"),
        (
            ["+experiment=topk1_v2", "policy=acceptance", "policy.bounds.disable_above=16"],
            "policy.bounds.disable_above=16 never acts",
        ),
        (
            [
                "+experiment=topk1_v2",
                "policy=depth_schedule",
                "policy.schedule=[{up_to:16,num_steps:3},{up_to:17,num_steps:1}]",
            ],
            "the line up_to=17 never acts",
        ),
        (["model.trust_remote_code=true"], "runs here"),
        (["speculation=eagle3_topk1"], "stays unused"),
        (["server.host=0.0.0.0"], "without server.api_key"),
        (["server.host=::"], "without server.api_key"),
        (["server.host=gpu-7"], "without server.api_key"),
        (["cuda_graph=off", "cuda_graph.batch_sizes=[1]"], "no effect"),
    ],
)
def test_what_is_probably_not_meant_is_said(overrides: list[str], words: str) -> None:
    [doubt] = config_warnings(parse_run(compose_tree(overrides)))

    assert words in doubt.text


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["+experiment=topk1_v2", "policy.disable_above=15"],
        [
            "+experiment=topk1_v2",
            "policy=depth_schedule",
            "policy.schedule=[{up_to:15,num_steps:3},{up_to:64,num_steps:1}]",
        ],
        ["server.host=127.0.0.2"],
        ["server.host=::1"],
        ["server.host=localhost"],
        ["server.host=0.0.0.0", "server.api_key=secret"],
        ["cuda_graph=off"],
    ],
)
def test_an_ordinary_run_raises_no_doubt(overrides: list[str]) -> None:
    assert () == config_warnings(parse_run(compose_tree(overrides)))
