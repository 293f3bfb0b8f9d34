"""What a ScriptedEngine plays: the token runs of one request, round after round."""

import math
from collections.abc import Callable, Iterator, Sequence

from specserve.engine import GenerationRequest, TokenLogprob

Script = Callable[[GenerationRequest], Iterator[Sequence[int]]]
"""Yields the tokens of one verify round after another; its end is the request's stop.

It may raise: a RequestError before the first run refuses the request.
"""


def play_back(*runs: Sequence[int]) -> Script:
    """The same runs for every request."""
    return lambda _: iter(runs)


def count_up(*, start: int, stop: int, run_length: int) -> Script:
    """Endless deterministic text: ids start … stop-1 in a circle, `run_length` a round.

    Prompt and seed (unless greedy) say where the circle is entered; ids that `logit_bias` bans
    (-100) are left out.
    """

    def script(request: GenerationRequest) -> Iterator[Sequence[int]]:
        sampling = request.sampling
        circle = [id_ for id_ in range(start, stop) if sampling.logit_bias.get(id_, 0.0) > -100]
        position = sum(request.prompt_token_ids) + (sampling.seed if sampling.temperature else 0)
        while True:
            yield [circle[(position + i) % len(circle)] for i in range(run_length)]
            position += run_length

    return script


def made_up_logprob(token_id: int, num_top: int) -> TokenLogprob:
    """A distribution that has the emitted token at 1/2 and each following id half as likely."""
    top = tuple((token_id + rank, -math.log(2) * (rank + 1)) for rank in range(num_top))
    return TokenLogprob(token_id=token_id, logprob=-math.log(2), top=top)


def visible_text(text: str, stops: Sequence[str], *, finished: bool) -> str:
    """What a client may see of `text`: nothing from a stop string on.

    Before the end, also nothing that may still change: an unfinished UTF-8 character, or the
    beginning of a stop string.
    """
    cut = min((text.find(stop) for stop in stops if stop in text), default=len(text))
    text = text[:cut]
    if finished:
        return text
    text = text.rstrip("\N{REPLACEMENT CHARACTER}")
    beginnings = (
        length
        for stop in stops
        for length in range(len(stop) - 1, 0, -1)
        if text.endswith(stop[:length])
    )
    return text[: len(text) - max(beginnings, default=0)]
