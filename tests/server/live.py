"""The application on a real port, in a thread of its own, with an engine that a test can reach."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any, TypeVar

from openai import OpenAI
from starlette.types import ASGIApp

from specserve.config.policy import AlwaysPolicy, PolicyConfig
from specserve.config.server import ServerConfig
from specserve.engine import EngineStats, PolicyState
from specserve.facts import Facts, Machine
from specserve.plan import (
    DraftPlan,
    MemoryPlan,
    Plan,
    SchedulerPlan,
    SpeculationPlan,
    TargetPlan,
)
from specserve.server.app import create_app
from specserve.server.history import RunHistory
from specserve.server.run import run_server
from specserve.server.state import ServerState, Serving
from specserve.server.tokenizer import Tokenizer
from specserve.testing.checkpoints import EOS_ID, byte_tokenizer
from specserve.testing.script import Script, count_up
from specserve.testing.scripted import ScriptedEngine

MODEL = "tiny"
VOCAB_SIZE = 320
CONTEXT_LENGTH = 512
FACTS = Facts(
    source="made up",
    machine=Machine(cpu_count=2, memory_bytes=2**30, gpus=()),
    versions={"torch": "2.13.0"},
    target=None,
    draft=None,
)
LETTERS = count_up(start=ord("a"), stop=ord("z") + 1, run_length=3)

T = TypeVar("T")


def server_config(*, api_key: str | None = None, max_body_bytes: int = 64 * 1024) -> ServerConfig:
    return ServerConfig(
        host="127.0.0.1",
        port=0,
        api_key=api_key,
        max_body_bytes=max_body_bytes,
        drain_seconds=5.0,
    )


def make_plan() -> Plan:
    """For a model that is not there: the server asks the plan for names and limits only."""
    target = TargetPlan(
        name=MODEL,
        path="/models/tiny",
        config={},
        architecture="llama",
        dtype="float32",
        quantization="none",
        quantization_group_size=None,
        num_layers=8,
        hidden_size=64,
        num_kv_heads=2,
        head_dim=16,
        vocab_size=VOCAB_SIZE,
        context_length=CONTEXT_LENGTH,
        eos_token_ids=(EOS_ID,),
        trust_remote_code=False,
    )
    draft = DraftPlan(
        path="/models/tiny-draft",
        config={},
        dtype="float32",
        quantization="none",
        quantization_group_size=None,
        aux_layer_inputs=(2, 4, 6),
        draft_vocab_size=128,
        num_kv_heads=2,
        head_dim=16,
        borrowed=("embed_tokens",),
    )
    return Plan(
        engine="torch",
        device="cpu",
        num_threads=1,
        target=target,
        speculation=SpeculationPlan(
            num_steps=3,
            depths=(1, 2, 3),
            topk=1,
            num_draft_tokens=4,
            while_off="warm",
            draft=draft,
        ),
        policy=AlwaysPolicy(kind="always"),
        calibration=None,
        scheduler=SchedulerPlan(
            kind="sync",
            device_thread=False,
            max_running_requests=8,
            max_queued_requests=8,
            prefill_chunk_tokens=64,
            max_kv_tokens=8 * CONTEXT_LENGTH,
            row_tokens=CONTEXT_LENGTH + 16,
        ),
        attention="sdpa",
        cuda_graph_batch_sizes=(),
        tensor_parallel=1,
        num_nodes=1,
        self_test_tokens=16,
        memory=MemoryPlan.counted({}),
        adjustments=(),
        warnings=(),
    )


def make_tokenizer() -> Tokenizer:
    return Tokenizer(byte_tokenizer(VOCAB_SIZE, CONTEXT_LENGTH))


def make_engine(script: Script = LETTERS, **options: Any) -> ScriptedEngine:  # noqa: ANN401
    tokenizer = make_tokenizer()
    return ScriptedEngine(script, decode=tokenizer.decode, eos_token_ids=(EOS_ID,), **options)


class SlowEngine(ScriptedEngine):
    """Between any two of its answers, others get their turn."""

    async def stats(self) -> EngineStats:
        await asyncio.sleep(0.001)
        return await super().stats()

    async def set_policy(self, policy: PolicyConfig) -> PolicyState:
        await asyncio.sleep(0.001)
        return await super().set_policy(policy)


@dataclass(frozen=True)
class Answer:
    """One HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json["error"]
        return found


@dataclass
class LiveServer:
    """A running server. `call` runs a function in the server's event loop, where its parts live."""

    engine: ScriptedEngine
    state: ServerState
    port: int
    loop: asyncio.AbstractEventLoop
    events: list[tuple[str, dict[str, Any]]]
    history: RunHistory

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, **headers: str) -> "Answer":
        return self.send("GET", path, None, **headers)

    def post(self, path: str, body: object, **headers: str) -> "Answer":
        return self.send("POST", path, body, **headers)

    def send(self, method: str, path: str, body: object, **headers: str) -> "Answer":
        """Bytes go as they are, anything else as JSON."""
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, content, headers)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def openai(self, api_key: str = "none") -> OpenAI:
        return OpenAI(base_url=f"{self.base_url}/v1", api_key=api_key, max_retries=0, timeout=20)

    def call(self, function: Callable[[], T]) -> T:
        async def run() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(10)


@contextmanager
def live_server(
    engine: ScriptedEngine,
    *,
    config: ServerConfig | None = None,
    ready: bool = True,
    tokenizer: Tokenizer | None = None,
    probe_seconds: float = 1.5,
    watch_seconds: float = 1.0,
) -> Iterator[LiveServer]:
    """Serve until the block ends, then see the server stop by itself."""
    state = ServerState(phase="load_target")
    events: list[tuple[str, dict[str, Any]]] = []
    history = RunHistory()

    def record_event(kind: str, fields: dict[str, Any]) -> None:
        events.append((kind, fields))
        history.note_event(kind, fields)

    app = create_app(
        state,
        plan=make_plan(),
        facts=FACTS,
        config=config or server_config(),
        record_event=record_event,
        history=history,
        probe_seconds=probe_seconds,
        watch_seconds=watch_seconds,
    )
    if ready:
        state.ready(serving_of(engine, tokenizer))
    listener = socket.create_server(("127.0.0.1", 0))
    with _running(app, listener) as loop:
        yield LiveServer(engine, state, listener.getsockname()[1], loop, events, history)


@contextmanager
def _running(app: ASGIApp, listener: socket.socket) -> Iterator[asyncio.AbstractEventLoop]:
    """The loop belongs to its thread from beginning to end: the test's own thread may have one."""
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    def serve() -> None:
        loop.run_until_complete(run_server(app, listener, stop=stop, grace_seconds=1))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        if thread.is_alive():
            raise TimeoutError("the server did not stop")


def serving_of(engine: ScriptedEngine, tokenizer: Tokenizer | None = None) -> Serving:
    return Serving(engine=engine, tokenizer=tokenizer or make_tokenizer(), probe=engine.stats)
