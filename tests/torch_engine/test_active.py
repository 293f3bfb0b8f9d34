import pytest

from specserve.testing.checkpoints import EOS_ID, byte_tokenizer
from specserve.testing.loops import make_request
from specserve.torch_engine.active import Output
from specserve.torch_engine.detokenize import token_decoder

DECODER = token_decoder(byte_tokenizer(300))


def output(
    *, max_tokens: int = 100, stop: tuple[str, ...] = (), ignore_eos: bool = False
) -> Output:
    request = make_request([1], max_tokens=max_tokens, stop=stop, ignore_eos=ignore_eos)
    return Output(request, frozenset({EOS_ID}), DECODER)


def test_the_end_token_counts_and_has_no_text() -> None:
    assert (3, "ab", "stop") == output().add([*b"ab", EOS_ID, *b"cd"])


def test_an_end_token_may_be_ignored() -> None:
    assert (5, "abcd", None) == output(ignore_eos=True).add([*b"ab", EOS_ID, *b"cd"])


@pytest.mark.parametrize("stop", [(), ("zz",)])
def test_what_waits_for_more_comes_out_at_the_end(stop: tuple[str, ...]) -> None:
    """Half a character, and the beginning of a stop string."""
    one = output(max_tokens=5, stop=stop)

    assert (3, "a" if stop else "az", None) == one.add([*b"az", 0xE2])
    assert (2, "z��" if stop else "��", "length") == one.add([0xE2, 0x82])


def test_a_stop_string_ends_at_the_token_that_completes_it() -> None:
    one = output(stop=("bc",))

    assert (2, "a", None) == one.add([*b"ab"])
    assert (1, "", "stop") == one.add([*b"cdef"])
    assert 3 == one.num_emitted


def test_a_stop_string_before_the_end_token_wins() -> None:
    assert (2, "", "stop") == output(stop=("ab",)).add([*b"abc", EOS_ID])


def test_a_stop_string_beyond_the_cap_is_not_reached() -> None:
    assert (2, "ab", "length") == output(max_tokens=2, stop=("abc",)).add([*b"abcd"])
