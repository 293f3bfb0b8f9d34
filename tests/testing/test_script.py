from itertools import islice

import pytest

from specserve.engine import GenerationRequest, Sampling
from specserve.testing.script import count_up, made_up_logprob, play_back, visible_text


def request(
    *,
    prompt: tuple[int, ...] = (0,),
    temperature: float = 0.0,
    seed: int = 0,
    logit_bias: dict[int, float] | None = None,
) -> GenerationRequest:
    return GenerationRequest(
        request_id="r",
        prompt_token_ids=prompt,
        max_tokens=8,
        sampling=Sampling(
            temperature=temperature,
            top_p=1.0,
            top_k=None,
            min_p=0.0,
            seed=seed,
            logit_bias=logit_bias or {},
        ),
        stop=(),
        stop_token_ids=(),
        top_logprobs=None,
        speculation=True,
        ignore_eos=False,
    )


def test_play_back_gives_every_request_the_same_runs() -> None:
    script = play_back([1, 2], [3])

    assert [[1, 2], [3]] == list(script(request())) == list(script(request(prompt=(9,))))


def test_count_up_goes_round_in_runs_of_the_asked_length() -> None:
    script = count_up(start=5, stop=8, run_length=2)

    assert [[5, 6], [7, 5], [6, 7]] == list(islice(script(request()), 3))


def test_count_up_leaves_out_banned_ids() -> None:
    script = count_up(start=5, stop=8, run_length=2)

    assert [[5, 7], [5, 7]] == list(islice(script(request(logit_bias={6: -100.0})), 2))


def test_a_seed_moves_only_what_is_sampled() -> None:
    script = count_up(start=5, stop=8, run_length=1)

    assert [[5]] == list(islice(script(request(seed=1)), 1))
    assert [[6]] == list(islice(script(request(seed=1, temperature=1.0)), 1))


def test_the_emitted_token_leads_its_alternatives() -> None:
    entry = made_up_logprob(4, 2)

    assert (4, entry.logprob) == entry.top[0]
    assert entry.top[0][1] > entry.top[1][1]


@pytest.mark.parametrize(
    ("shown", "text", "finished"),
    [
        ("one ", "one STOP two", False),
        ("one ", "one STO", False),
        ("one STO", "one STO", True),
        ("one S T", "one S T", False),
        ("caf", "caf\N{REPLACEMENT CHARACTER}", False),
        ("caf\N{REPLACEMENT CHARACTER}", "caf\N{REPLACEMENT CHARACTER}", True),
    ],
)
def test_text_that_may_still_change_is_held_back(shown: str, text: str, finished: bool) -> None:
    assert shown == visible_text(text, ["STOP"], finished=finished)
