"""Held-out prompts that end where a function's body starts."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path

from tokenizers import Tokenizer

from demo_training.corpus import Document
from demo_training.settings import Evaluation

_HEADER = re.compile(r"^[ \t]*(?:async )?def \w+\([^\n]*\)[^\n]*:$", re.MULTILINE)


def held_out_prompts(
    documents: Sequence[Document], tokenizer: Tokenizer, settings: Evaluation
) -> list[Document]:
    """Return `num_prompts` prompts (fewer if the files have fewer): one of each file in turn."""
    found = [_prompts(document, tokenizer, settings) for document in documents]
    in_turn = (prompt for round_ in zip_longest(*found) for prompt in round_ if prompt is not None)
    return list(islice(in_turn, settings.num_prompts))


def save_prompts(prompts: Sequence[Document], path: Path) -> None:
    """One JSON object a line: the file it comes from, and the text."""
    lines = [json.dumps({"path": prompt.path, "prompt": prompt.text}) for prompt in prompts]
    path.write_text("".join(line + "\n" for line in lines))


def load_prompts(path: Path) -> list[Document]:
    """What `save_prompts` wrote."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [Document(record["path"], record["prompt"]) for record in records]


def _prompts(
    document: Document, tokenizer: Tokenizer, settings: Evaluation
) -> Iterator[Document | None]:
    # From the middle of a file on, so that the first prompts are not all constructors.
    headers = list(_HEADER.finditer(document.text))
    middle = len(headers) // 2
    for header in headers[middle:] + headers[:middle]:
        text = _whole_lines(document.text[: header.end()], tokenizer, settings)
        if text is not None:
            yield Document(document.path, text)


def _whole_lines(text: str, tokenizer: Tokenizer, settings: Evaluation) -> str | None:
    """The fewest last lines with at least the least number of tokens; None if too many then."""
    lines = text.split("\n")
    for start in range(len(lines) - 1, -1, -1):
        candidate = "\n".join(lines[start:])
        num_tokens = len(tokenizer.encode(candidate).ids)
        if num_tokens >= settings.min_prompt_tokens:
            return candidate if num_tokens <= settings.max_prompt_tokens else None
    return None
