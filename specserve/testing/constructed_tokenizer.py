"""The tokenizer of a constructed pair: token 300 is written <300>.

Text that is not such a number is tokenised by bytes, so any prompt can be sent. Every id from 257
on decodes to its own number and back, wherever a text is cut, so a client can check every token.
"""

import json
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

END_ID = 256
FIRST_FREE_ID = 257

_CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def save_tokenizer(folder: Path, vocab_size: int, context_length: int, eos_id: int) -> None:
    """Write tokenizer.json and tokenizer_config.json: ids 0-255 are bytes, 256 the end token."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {symbol: index for index, symbol in enumerate(alphabet)}
    vocab |= {token_text(index): index for index in range(len(alphabet), vocab_size)}
    # Without merges a piece is either in the vocabulary as a whole or split into bytes.
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[], ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"<(?:\d+|\|endoftext\|)>"), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": token_text(eos_id),
        "pad_token": token_text(END_ID),
        "clean_up_tokenization_spaces": False,
        "model_max_length": context_length,
        "chat_template": _CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


def token_text(token_id: int) -> str:
    """How ids from END_ID on are written."""
    return "<|endoftext|>" if token_id == END_ID else f"<{token_id}>"
