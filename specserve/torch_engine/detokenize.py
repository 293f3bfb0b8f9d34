"""Token ids to text, a few at a time, without ever showing half a character."""

from collections.abc import Sequence
from typing import Protocol

from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from specserve.errors import EngineError

_REPLACEMENT = "\ufffd"
# Three bytes of a four-byte character are the most that can be waiting for the rest.
_MOST_WAITING = 3
_CONTEXT_TOKENS = 16
_LONGEST_WINDOW = 64


class TokenDecoder(Protocol):
    """What is needed of a tokenizer; `tokenizers.Tokenizer` and transformers' have it."""

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
        """The text of the ids, read together; U+FFFD for bytes that are no character."""
        ...


def token_decoder(tokenizer: PreTrainedTokenizerBase) -> TokenDecoder:
    """The tokenizer's fast backend. Raises EngineError if it has none."""
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise EngineError(
            f"the tokenizer is a {type(tokenizer).__name__}: expected a fast one (tokenizer.json)"
        )
    return tokenizer.backend_tokenizer


class TextStream:
    """Decodes one request's output behind the end of its prompt.

    Ids are decoded together with a bounded window of those before them, because in many
    vocabularies a token's text depends on its left neighbour (leading spaces, shared characters).
    All pieces joined are the text of the whole output; a piece costs the same however long the
    output already is.
    """

    def __init__(self, decoder: TokenDecoder, context: Sequence[int]) -> None:
        self._decoder = decoder
        self._window = list(context[-_CONTEXT_TOKENS:])
        text = decoder.decode(self._window)
        self._num_shown = len(text) - _num_waiting(text)

    def add(self, ids: Sequence[int]) -> str:
        """The text that the ids complete."""
        self._window.extend(ids)
        text = self._decoder.decode(self._window)
        num_waiting = _num_waiting(text)
        piece = text[self._num_shown : len(text) - num_waiting]
        self._num_shown += len(piece)
        if len(self._window) > _LONGEST_WINDOW:
            self._shorten(len(text) - self._num_shown)
        return piece

    def flush(self) -> str:
        """What is still waiting, as U+FFFD: the rest of the character will not come."""
        text = self._decoder.decode(self._window)
        shown, self._num_shown = self._num_shown, len(text)
        return text[shown:]

    def _shorten(self, num_not_shown: int) -> None:
        """Keep the last ids, starting with a whole character if one starts near there."""
        for extra in range(_MOST_WAITING + 1):
            window = self._window[-(_CONTEXT_TOKENS + extra) :]
            text = self._decoder.decode(window)
            if not text.startswith(_REPLACEMENT):
                break
        self._window = window
        self._num_shown = max(len(text) - num_not_shown, 0)


def _num_waiting(text: str) -> int:
    """How many characters at the end may still change when the next bytes come."""
    return min(len(text) - len(text.rstrip(_REPLACEMENT)), _MOST_WAITING)
