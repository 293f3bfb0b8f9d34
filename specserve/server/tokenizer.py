"""The tokenizer as the server needs it: prompts in, the bytes of single tokens out."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateError

from specserve.errors import ConfigError, Problem, RequestError
from specserve.plan import TargetPlan
from specserve.rule_ids import RuleId

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_BYTE_FALLBACK = re.compile(r"<0x([0-9A-F]{2})>")


def load_tokenizer(target: TargetPlan) -> "Tokenizer":
    """The fast tokenizer in the target's folder. Raises ConfigError if there is none."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast  # heavy: imports torch

    try:
        loaded = AutoTokenizer.from_pretrained(
            target.path, trust_remote_code=target.trust_remote_code
        )
    except (OSError, ValueError) as error:
        raise _no_tokenizer(target, f"a tokenizer that loads ({error})") from error
    if not isinstance(loaded, PreTrainedTokenizerFast):
        expected = f"a fast tokenizer (tokenizer.json); this one is a {type(loaded).__name__}"
        raise _no_tokenizer(target, expected)
    return Tokenizer(loaded)


def _no_tokenizer(target: TargetPlan, expected: str) -> ConfigError:
    fix = "put the model's own tokenizer.json and tokenizer_config.json into the folder"
    return ConfigError(
        [
            Problem(
                rule=RuleId.NO_TOKENIZER,
                key="model.path",
                value=target.path,
                expected=expected,
                fix=fix,
            )
        ]
    )


class Tokenizer:
    """Encodes off the event loop, since a long prompt takes a while. Safe for concurrent use."""

    def __init__(self, tokenizer: "PreTrainedTokenizerFast") -> None:
        self._tokenizer = tokenizer
        self._backend = tokenizer.backend_tokenizer
        # Truncation or padding that a checkpoint brings would cut prompts silently.
        self._backend.no_truncation()
        self._backend.no_padding()
        self._byte_of_symbol = _byte_symbols() if _is_byte_level(self._backend.to_str()) else None
        self._special_ids = frozenset(self._backend.get_added_tokens_decoder())
        self._longest_token_bytes = max(len(token.encode()) for token in self._backend.get_vocab())

    def surely_exceeds(self, text: str, num_tokens: int) -> bool:
        """Whether `text` must have more tokens than that, told without encoding it.

        Encoding megabytes takes seconds; only byte-level vocabularies promise that no token
        covers more bytes than the longest one has (and normalizing shrinks at most fourfold).
        """
        return self._byte_of_symbol is not None and (
            len(text.encode()) > 4 * self._longest_token_bytes * num_tokens
        )

    async def encode(self, text: str) -> tuple[int, ...]:
        """Ids of a prompt, with the special tokens that the model expects around it."""
        return await asyncio.to_thread(self._encode, text, special=True)

    async def encode_chat(self, messages: Sequence[Mapping[str, str]]) -> tuple[int, ...]:
        """Ids of a conversation, up to where the assistant's answer begins.

        Raises RequestError without a chat template, or if the template refuses the messages.
        """
        return await asyncio.to_thread(self._encode_chat, messages)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of ids, without special tokens."""
        return self._backend.decode(list(token_ids), skip_special_tokens=True)

    def token_bytes(self, token_id: int) -> bytes:
        """What one token stands for; an id that the tokenizer doesn't know gives `<id>`."""
        token = self._backend.id_to_token(token_id)
        if token is None:
            return f"<{token_id}>".encode()
        if token_id in self._special_ids:
            return token.encode()
        if self._byte_of_symbol is not None:
            return bytes(self._byte_of_symbol[symbol] for symbol in token)
        if fallback := _BYTE_FALLBACK.fullmatch(token):
            return bytes.fromhex(fallback[1])
        return token.replace("▁", " ").encode()  # SentencePiece's sign for a space

    def _encode(self, text: str, *, special: bool) -> tuple[int, ...]:
        # A batch of one: unlike `encode`, it lets other threads run meanwhile.
        [encoding] = self._backend.encode_batch([text], add_special_tokens=special)
        return tuple(encoding.ids)

    def _encode_chat(self, messages: Sequence[Mapping[str, str]]) -> tuple[int, ...]:
        if self._tokenizer.chat_template is None:
            message = "the model's tokenizer has no chat template; use /v1/completions"
            raise RequestError(message, param="messages")
        try:
            text: Any = self._tokenizer.apply_chat_template(
                [dict(message) for message in messages], tokenize=False, add_generation_prompt=True
            )
        except TemplateError as error:
            message = f"the model's chat template refuses these messages: {error}"
            raise RequestError(message, param="messages") from error
        return self._encode(text, special=False)  # the template writes them itself


def _is_byte_level(tokenizer_json: str) -> bool:
    """Whether tokens are spelt in byte-level BPE's stand-ins (GPT-2, Llama 3, Qwen)."""
    decoder = json.loads(tokenizer_json)["decoder"] or {}
    steps = decoder.get("decoders", [decoder])
    return any(step.get("type") == "ByteLevel" for step in steps)


def _byte_symbols() -> dict[str, int]:
    """Byte-level BPE's printable stand-in of each byte, as symbol → byte."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(0x100) if byte not in printable)
    return {chr(byte): byte for byte in printable} | {
        chr(0x100 + rank): byte for rank, byte in enumerate(others)
    }
