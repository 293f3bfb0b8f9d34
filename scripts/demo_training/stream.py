"""Documents packed into one stream of ids, and windows of it."""

from collections.abc import Iterable, Iterator

import torch
from tokenizers import Tokenizer
from torch import Tensor

from demo_training.corpus import Document
from demo_training.tokenizer import end_of_text_id


def packed(tokenizer: Tokenizer, documents: Iterable[Document], device: torch.device) -> Tensor:
    """Ids of all documents, [N] int64, each document preceded and the last followed by the end."""
    end = end_of_text_id(tokenizer)
    ids = [end]
    for encoding in tokenizer.encode_batch([document.text for document in documents]):
        ids.extend(encoding.ids)
        ids.append(end)
    return torch.tensor(ids, device=device)


def windows(stream: Tensor, length: int, offset: int = 0, stride: int | None = None) -> Tensor:
    """Consecutive windows, [number, length], a view; the rest at the end is left out."""
    if len(stream) - offset < length:
        raise ValueError(f"{len(stream)} tokens: fewer than a window of {length}")
    return stream[offset:].unfold(0, length, stride or length)


def batches(
    stream: Tensor, *, batch_size: int, length: int, generator: torch.Generator
) -> Iterator[Tensor]:
    """Endless [batch_size, length] batches: every epoch has its own offset and order."""
    while True:
        offset = int(torch.randint(length, (1,), generator=generator))
        epoch = windows(stream, length, offset)
        order = torch.randperm(len(epoch), generator=generator).to(stream.device)
        if len(epoch) < batch_size:
            raise ValueError(f"{len(epoch)} windows of {length} tokens: fewer than {batch_size}")
        for rows in torch.split(order, batch_size):
            if len(rows) == batch_size:
                yield epoch[rows]
