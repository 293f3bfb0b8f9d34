import pytest

from specserve.errors import ConfigError
from specserve.replay.arguments import help_text, parse_arguments


def test_flags_and_overrides_may_be_mixed() -> None:
    args = parse_arguments(["policy=off", "--seed", "3", "+experiment=topk1_v2"])

    assert (["policy=off", "+experiment=topk1_v2"], 3) == (args.overrides, args.seed)


def test_an_unknown_shape_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"invalid choice: 'wave'.*ramp.*sawtooth"):
        parse_arguments(["--generate", "wave"])


def test_help_tells_every_flag_the_format_of_a_trace_and_the_exit_codes() -> None:
    told = help_text()

    flags = [name for name in vars(parse_arguments([])) if name != "overrides"]
    assert [] == [name for name in flags if f"--{name.replace('_', '-')}" not in told]
    assert "running_decodes   requests in decode" in told
    assert "2 a flag, a file or the configuration is wrong" in told
    assert max(map(len, told.splitlines())) <= 100
