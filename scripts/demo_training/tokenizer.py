"""A byte-level BPE tokenizer whose pieces end where people cut code."""

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

END_OF_TEXT = "<|endoftext|>"

# Newlines and a line's indentation are pieces of their own, so that a prompt may end after
# either and still be tokenised as the same text was in training. Digits stand alone.
_PIECES = Regex(r"\n+|(?<=\n)[ \t]+| ?\p{L}+|\d| ?[^\s\p{L}\d]+|[^\S\n]+")

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message['role'] == 'assistant' -%}"
    "{{- '# assistant:\\n' + message['content'] + '\\n' -}}"
    "{%- else -%}"
    "{{- '# ' + message['role'] + ': ' + message['content'] | replace('\\n', '\\n# ') + '\\n' -}}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '# assistant:\\n' -}}{%- endif -%}"
)


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Return a tokenizer of exactly `vocab_size` ids; id 0 is END_OF_TEXT."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(_PIECES, behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if tokenizer.get_vocab_size() != vocab_size:
        raise ValueError(
            f"the corpus gives {tokenizer.get_vocab_size()} tokens, expected {vocab_size}: "
            "use a larger corpus"
        )
    return tokenizer


def end_of_text_id(tokenizer: Tokenizer) -> int:
    """The id that ends a document."""
    token_id = tokenizer.token_to_id(END_OF_TEXT)
    if token_id is None:
        raise ValueError(f"the tokenizer has no {END_OF_TEXT}: it is not the demo pair's")
    return int(token_id)


def save_tokenizer(tokenizer: Tokenizer, folder: Path, context_length: int) -> None:
    """Write tokenizer.json and tokenizer_config.json, as `transformers` reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END_OF_TEXT,
        "eos_token": END_OF_TEXT,
        "pad_token": END_OF_TEXT,
        "clean_up_tokenization_spaces": False,
        "model_max_length": context_length,
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
