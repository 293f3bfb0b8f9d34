import json
import shlex

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import example, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from specserve.config.compose import compose_tree
from specserve.config.quote import override, quote, shell_override

_TEXT = st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: text != "???")
_NASTY = st.text(alphabet="\\${}\"'=#,a []:.?").filter(lambda text: text != "???")
_PLAIN_DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXT | _NASTY,
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


def _read(text: str) -> object:
    """The value of an override as the composed configuration holds it."""
    value = OverridesParser.create().parse_override(text).value()
    container = OmegaConf.to_container(OmegaConf.create({"key": value}), resolve=True)
    return json.loads(json.dumps(container))["key"]


@given(_TEXT | _NASTY)
@example("${model.path}")
@example("\\${a}\\")
@example('ends with a backslash \\\\"')
@example("off")
@example("a\nb")
@settings(max_examples=300, deadline=None)
def test_any_text_survives_quoting(text: str) -> None:
    assert text == _read(f"key={quote(text)}")


@given(_PLAIN_DATA)
@example("1e10")
@example("true")
@example("?")
@example([["a,b"], None])
@settings(max_examples=300, deadline=None)
def test_any_plain_value_survives_an_override(value: object) -> None:
    assert value == _read(override("key", value))


@pytest.mark.parametrize("path", ["/ckpt/step=300", "/a#b", "0,1", "/été/模型", "/a b", "/@x%y"])
def test_a_quoted_path_survives_the_whole_composition(path: str) -> None:
    tree = compose_tree([override("model.name", path)])

    assert path == tree["model"]["name"]


def test_a_missing_value_cannot_be_written_as_text() -> None:
    with pytest.raises(ValueError, match="missing value"):
        quote("???")


def test_ordinary_values_are_not_quoted() -> None:
    written = [override("k", value) for value in ("auto", "/a/b.c", 3, 0.5, None, True, [1, 2])]

    assert ["k=auto", "k=/a/b.c", "k=3", "k=0.5", "k=null", "k=true", "k=[1,2]"] == written


def test_the_shell_form_reads_back_as_one_word() -> None:
    assert [override("k", "it's a=b")] == shlex.split(shell_override("k", "it's a=b"))
