import pytest

from specserve.config.override_problems import Flaw, ParsedOverride, override_flaw, unreadable


def _override(
    text: str, value: object, *, is_sweep: bool = False, options: str = ""
) -> Flaw | None:
    sign = text[: len(text) - len(text.lstrip("+~"))]
    key = text.lstrip("+~").partition("=")[0]
    return override_flaw(
        ParsedOverride(
            text=text,
            sign=sign,
            key=key,
            value=value,
            is_sweep=is_sweep,
            options=tuple(options.split()),
        )
    )


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("model.path=/ckpt/step=300", """'model.path="/ckpt/step=300"'"""),
        ("model.path=/a#b", """'model.path="/a#b"'"""),
        ("++model.path=a'b", """'++model.path="a'"'"'b"'"""),
    ],
)
def test_the_quoted_form_to_type_is_shown(text: str, typed: str) -> None:
    assert f"type {typed}" == unreadable(text).problem.fix


@pytest.mark.parametrize("text", ["word", "two words=1", "=1", "model.name=???"])
def test_what_cannot_be_quoted_into_sense_stays_open(text: str) -> None:
    assert unreadable(text).meant is None


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("model.path=a,b", 'model.path="a,b"'),
        ("cuda_graph.batch_sizes=1,2", "cuda_graph.batch_sizes=[1,2]"),
        ("server.port=1,2", "server.port=1"),
        ("server.port=range(1,3)", None),
    ],
)
def test_a_sweep_is_read_as_the_key_needs_it(text: str, meant: str | None) -> None:
    flaw = _override(text, None, is_sweep=True)

    assert flaw is not None
    assert meant == flaw.meant


@pytest.mark.parametrize(
    ("text", "value", "options", "meant"),
    [
        ("policy=alway", "alway", "always off", "policy=always"),
        ("policy=false", False, "always off", "policy=off"),
        ("policy=zzz", "zzz", "always off", None),
        ("+policy=off", "off", "always off", "policy=off"),
        ("experiment=a", "a", "a b", "+experiment=a"),
        ("+experiment=[a,x]", ["a", "x"], "a bxx", None),
        ("model.name=1e5", 1e5, "", 'model.name="1e5"'),
        ("model.name=true", True, "", 'model.name="true"'),
    ],
)
def test_what_an_override_means(text: str, value: object, options: str, meant: str | None) -> None:
    flaw = _override(text, value, options=options)

    assert flaw is not None
    assert meant == flaw.meant


@pytest.mark.parametrize("text", ["hydra.mode=MULTIRUN", "+hydra.job.chdir=x", "hydra/help=x"])
def test_a_setting_of_hydra_that_would_do_nothing_is_refused(text: str) -> None:
    flaw = _override(text, text.partition("=")[2], options="x")

    assert flaw is not None
    assert "hydra.run.dir" in flaw.problem.expected


@pytest.mark.parametrize(
    ("text", "value", "options"),
    [
        ("policy=off", "off", "always off"),
        ("+experiment=[a,b]", ["a", "b"], "a b"),
        ("hydra.run.dir=/a", "/a", ""),
        ("server.port=1", 1, ""),
        ("server.api_key=null", None, ""),
        ("~policy", None, ""),
    ],
)
def test_a_sound_override_has_no_flaw(text: str, value: object, options: str) -> None:
    assert _override(text, value, options=options) is None
