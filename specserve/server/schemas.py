"""What clients may ask. A field we accept is a field we honour; every other one is refused.

The defaults are OpenAI's.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from specserve.config.strict import StrictModel
from specserve.errors import RequestError
from specserve.server.field_values import (
    Prompt,
    parse_content,
    parse_logit_bias,
    parse_prompts,
    parse_stops,
    parse_temperature,
)

MAX_CHOICES = 128
MAX_TOP_LOGPROBS = 20
MAX_STOP_TOKEN_IDS = 256


class StreamOptions(StrictModel):
    """`include_usage`: one more chunk, with the whole request's usage."""

    include_usage: bool = False


class GenerationFields(StrictModel):
    """What both endpoints understand.

    `speculation` false decodes this request plainly. `user` goes to the log, for the operator.
    `neutral_values` lists OpenAI's fields that are not supported, with the values besides null
    that ask for nothing; those are dropped.
    """

    neutral_values: ClassVar[Mapping[str, tuple[object, ...]]] = {
        "presence_penalty": (0, 0.0),
        "frequency_penalty": (0, 0.0),
    }

    model: str
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: int = Field(default=1, ge=1, le=MAX_CHOICES)
    max_tokens: int | None = Field(default=None, ge=1)
    temperature: Annotated[float, BeforeValidator(parse_temperature)] = Field(
        default=1.0, ge=0, le=2
    )
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=1)
    min_p: float = Field(default=0.0, ge=0, le=1)
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    stop: Annotated[tuple[str, ...], BeforeValidator(parse_stops)] = ()
    stop_token_ids: list[int] = Field(default_factory=list, max_length=MAX_STOP_TOKEN_IDS)
    logit_bias: Annotated[dict[int, float], BeforeValidator(parse_logit_bias)] = Field(
        default_factory=dict
    )
    ignore_eos: bool = False
    speculation: bool = True
    user: str | None = None

    @model_validator(mode="after")
    def _only_streams_have_stream_options(self) -> Self:
        if self.stream_options is not None and not self.stream:
            raise RequestError("stream_options: needs stream=true", param="stream_options")
        return self

    @property
    def include_usage(self) -> bool:
        """Whether the stream ends with a chunk that holds the usage."""
        return self.stream_options is not None and self.stream_options.include_usage


class CompletionRequest(GenerationFields):
    """POST /v1/completions. `logprobs` N: each token's logprob and the N likeliest alternatives."""

    neutral_values: ClassVar[Mapping[str, tuple[object, ...]]] = {
        **GenerationFields.neutral_values,
        "suffix": ("",),
    }

    prompt: Annotated[tuple[Prompt, ...], BeforeValidator(parse_prompts)]
    echo: bool = False
    logprobs: int | None = Field(default=None, ge=0, le=MAX_TOP_LOGPROBS)
    best_of: int | None = None

    @model_validator(mode="after")
    def _every_choice_is_returned(self) -> Self:
        if self.best_of not in (None, self.n):
            message = f"best_of: {self.best_of} of n={self.n}; only best_of equal to n is supported"
            raise RequestError(message, param="best_of")
        return self

    @model_validator(mode="after")
    def _the_prompt_has_no_logprobs(self) -> Self:
        if self.echo and self.logprobs is not None:
            raise RequestError("echo: not supported together with logprobs", param="echo")
        return self


class Message(StrictModel):
    """One turn. `developer` is OpenAI's newer name of `system`."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Annotated[str, BeforeValidator(parse_content)]

    def for_template(self) -> dict[str, str]:
        """In the words of chat templates."""
        role = "system" if self.role == "developer" else self.role
        return {"role": role, "content": self.content}


class ChatRequest(GenerationFields):
    """POST /v1/chat/completions. `max_completion_tokens` is the newer name of `max_tokens`."""

    neutral_values: ClassVar[Mapping[str, tuple[object, ...]]] = {
        **GenerationFields.neutral_values,
        "response_format": ({"type": "text"},),
        "tools": ([],),
        "tool_choice": ("none",),
        "parallel_tool_calls": (True, False),
        "functions": ([],),
        "function_call": ("none",),
        "modalities": (["text"],),
        "audio": (),
        "prediction": (),
        "reasoning_effort": (),
        "verbosity": (),
        "web_search_options": (),
        "store": (False,),
        "metadata": ({},),
        "service_tier": ("auto", "default"),
    }

    messages: list[Message] = Field(min_length=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    logprobs: bool = False
    top_logprobs: int | None = Field(default=None, ge=0, le=MAX_TOP_LOGPROBS)

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        if self.max_tokens is not None and self.max_completion_tokens is not None:
            message = "max_completion_tokens: given together with its older name max_tokens"
            raise RequestError(message, param="max_completion_tokens")
        return self

    @model_validator(mode="after")
    def _alternatives_come_with_logprobs(self) -> Self:
        if self.top_logprobs is not None and not self.logprobs:
            raise RequestError("top_logprobs: needs logprobs=true", param="top_logprobs")
        return self
