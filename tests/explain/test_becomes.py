from specserve.config.keys import all_keys
from specserve.config.load import load_run
from specserve.explain.becomes import becomes
from specserve.explain.engine_arguments import EngineArgument

SGLANG = ["engine=sglang"]


def _argument(name: str, value: str, key: str) -> EngineArgument:
    return EngineArgument(name=name, value=value, key=key)


def test_a_key_may_become_several_arguments_and_a_section_all_of_its() -> None:
    config = load_run(SGLANG).config
    given = [
        _argument("--a", "1", "policy.kind"),
        _argument("NAME", "2", "policy.kind"),
        _argument("--x", "", "engine.extra_args.x"),
    ]

    assert ("--a 1", "NAME=2") == becomes("policy.kind", config, given)
    assert ("--x",) == becomes("engine.extra_args", config, given)


def test_where_nothing_is_given_it_says_whose_default_holds() -> None:
    given = [_argument("--a", "1", "policy.kind")]

    assert ("no argument: SGLang's own default of --page-size",) == becomes(
        "engine.page_size", load_run(SGLANG).config, given
    )
    assert ("--page-size",) == becomes("engine.page_size", load_run(SGLANG).config, [])


def test_no_key_is_without_an_answer_under_sglang() -> None:
    config = load_run(SGLANG).config

    assert [] == [key for key in all_keys() if not becomes(key, config, [])]
