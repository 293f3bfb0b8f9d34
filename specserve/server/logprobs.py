"""Token logprobs in the shapes of the two endpoints."""

from collections.abc import Sequence

from specserve.engine import TokenLogprob
from specserve.server.responses import (
    ChatLogprobs,
    ChatTokenLogprob,
    CompletionLogprobs,
    TopLogprob,
)
from specserve.server.tokenizer import Tokenizer

_LOWEST = -9999.0  # JSON has no -inf


def completion_logprobs(
    logprobs: Sequence[TokenLogprob], tokenizer: Tokenizer, *, offset: int
) -> CompletionLogprobs:
    """`offset` is where the first token's text begins."""
    tokens = [_spelling(tokenizer.token_bytes(entry.token_id)) for entry in logprobs]
    offsets = [offset]
    for token in tokens:
        offsets.append(offsets[-1] + len(token))
    return CompletionLogprobs(
        tokens=tokens,
        token_logprobs=[max(entry.logprob, _LOWEST) for entry in logprobs],
        top_logprobs=[
            {
                _spelling(tokenizer.token_bytes(token_id)): max(logprob, _LOWEST)
                for token_id, logprob in entry.top
            }
            for entry in logprobs
        ],
        text_offset=offsets[:-1],
    )


def chat_logprobs(logprobs: Sequence[TokenLogprob], tokenizer: Tokenizer) -> ChatLogprobs:
    """One entry for each token, in order."""
    return ChatLogprobs([_chat_entry(entry, tokenizer) for entry in logprobs])


def _chat_entry(entry: TokenLogprob, tokenizer: Tokenizer) -> ChatTokenLogprob:
    token = _alternative(entry.token_id, entry.logprob, tokenizer)
    return ChatTokenLogprob(
        token=token.token,
        logprob=token.logprob,
        bytes=token.bytes,
        top_logprobs=[_alternative(id_, logprob, tokenizer) for id_, logprob in entry.top],
    )


def _alternative(token_id: int, logprob: float, tokenizer: Tokenizer) -> TopLogprob:
    spelt = tokenizer.token_bytes(token_id)
    return TopLogprob(spelt.decode(errors="replace"), max(logprob, _LOWEST), list(spelt))


def _spelling(token: bytes) -> str:
    """The token's text; a piece of a character is spelt in bytes, to keep alternatives apart."""
    try:
        return token.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in token)
