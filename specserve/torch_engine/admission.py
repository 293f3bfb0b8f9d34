"""Who may run: first come, first served, within the request limit and the KV budget."""

from collections import deque

from specserve.engine import GenerationRequest
from specserve.errors import RequestError
from specserve.plan import SchedulerPlan


def kv_tokens_of(request: GenerationRequest) -> int:
    """Tokens that a running request reserves: its prompt and all it may generate."""
    return len(request.prompt_token_ids) + request.max_tokens


class Admission:
    """The queue, and what running requests have reserved."""

    def __init__(self, limits: SchedulerPlan) -> None:
        self._limits = limits
        self._queue: deque[GenerationRequest] = deque()
        self._reserved: dict[str, int] = {}
        self._free_tokens = limits.max_kv_tokens

    @property
    def num_queued(self) -> int:
        """Requests that wait."""
        return len(self._queue)

    @property
    def num_running(self) -> int:
        """Requests that hold KV slots."""
        return len(self._reserved)

    @property
    def free_tokens(self) -> int:
        """What is left of the KV budget."""
        return self._free_tokens

    def enqueue(self, request: GenerationRequest) -> None:
        """Raises RequestError for a known id, or if more than `max_queued_requests` had to wait."""
        request_id = request.request_id
        if request_id in self._reserved or any(q.request_id == request_id for q in self._queue):
            raise RequestError(f"request_id {request_id!r} is already in use", param="request_id")
        if self._num_waiting_with(request) > self._limits.max_queued_requests:
            raise RequestError(
                f"{len(self._queue)} requests are queued and max_queued_requests is "
                f"{self._limits.max_queued_requests}: try again later",
                param=None,
                status=429,
            )
        self._queue.append(request)

    def admit(self) -> GenerationRequest | None:
        """The next request, if it fits now; its tokens are then reserved until `release`."""
        if not self._queue or len(self._reserved) == self._limits.max_running_requests:
            return None
        needed = kv_tokens_of(self._queue[0])
        if needed > self._free_tokens:
            return None
        request = self._queue.popleft()
        self._reserved[request.request_id] = needed
        self._free_tokens -= needed
        return request

    def release(self, request_id: str) -> None:
        """Give back what a running request has reserved."""
        self._free_tokens += self._reserved.pop(request_id)

    def withdraw(self, request_id: str) -> GenerationRequest | None:
        """Take a waiting request out of the queue; None if it is not waiting."""
        for request in self._queue:
            if request.request_id == request_id:
                self._queue.remove(request)
                return request
        return None

    def _num_waiting_with(self, request: GenerationRequest) -> int:
        """How many would have to wait, were everything that fits admitted at once."""
        free_tokens = self._free_tokens
        places = self._limits.max_running_requests - len(self._reserved)
        waiting = [*self._queue, request]
        for count, queued in enumerate(waiting):
            free_tokens -= kv_tokens_of(queued)
            if count == places or free_tokens < 0:
                return len(waiting) - count
        return 0
