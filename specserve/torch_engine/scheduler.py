"""What the next step computes: who is admitted, whose prompt goes on, who decodes and how."""

from specserve.engine import GenerationChunk, GenerationRequest
from specserve.plan import Plan, SpeculationPlan
from specserve.torch_engine.active import ActiveRequest, Output, aborted_chunk
from specserve.torch_engine.admission import Admission
from specserve.torch_engine.detokenize import TokenDecoder
from specserve.torch_engine.drafter import Drafter
from specserve.torch_engine.group import Group, make_depth, make_group
from specserve.torch_engine.lineup import Lineup, Move
from specserve.torch_engine.prefill import Chunk, Prefill
from specserve.torch_engine.round import Decoder
from specserve.torch_engine.steering import Steering
from specserve.torch_engine.step_work import StepWork
from specserve.torch_engine.totals import Totals


class Scheduler:
    """Owns the requests, from the queue to their end, and the rows that they hold."""

    def __init__(
        self,
        *,
        plan: Plan,
        decoder: Decoder,
        drafter: Drafter | None,
        steering: Steering,
        totals: Totals,
        text: TokenDecoder,
    ) -> None:
        self._plan = plan
        self._decoder = decoder
        self._drafter = drafter
        self._steering = steering
        self._totals = totals
        self._text = text
        self._eos_ids = frozenset(plan.target.eos_token_ids)
        self._lineup = Lineup()
        self._prefill: Prefill | None = None
        self._running: dict[str, ActiveRequest] = {}
        self._groups: dict[tuple[int, int], Group] = {}
        self._moves: list[Move] = []
        self._num_steps_planned = 0
        self.admission = Admission(plan.scheduler)

    @property
    def running_decodes(self) -> int:
        """Requests that decode."""
        return len(self._lineup)

    @property
    def has_requests(self) -> bool:
        """Whether anyone waits or runs."""
        return bool(self.admission.num_queued or self.admission.num_running)

    def next_work(self) -> StepWork | None:
        """The next step's work, or None if nobody needs any."""
        if not self.has_requests:
            return None
        work = StepWork(serial=self._num_steps_planned, decoder=self._decoder, totals=self._totals)
        if not len(self._lineup):
            # A prompt for an idle engine should know whether the draft will be wanted.
            self._steering.decide(0)
        self._pass_prompts(work)
        if len(self._lineup):
            self._steering.decide(len(self._lineup))
            self._decode(work)
        self._num_steps_planned += 1
        return work

    def abort(self, request_id: str) -> GenerationChunk | None:
        """End a request wherever it is; None for an unknown id."""
        waiting = self.admission.withdraw(request_id)
        if waiting is not None:
            return aborted_chunk(waiting)
        if self._prefill is not None and self._prefill.request.request_id == request_id:
            chunk = aborted_chunk(self._prefill.request)
            self._prefill = None
            self.admission.release(request_id)
            return chunk
        if request_id not in self._running:
            return None
        request = self._running[request_id]
        self.release(request)
        return request.abort()

    def release(self, request: ActiveRequest) -> None:
        """Give back a decoding request's row and its share of the KV budget."""
        request_id = request.request.request_id
        del self._running[request_id]
        self.admission.release(request_id)
        self._moves += self._lineup.remove(request)
        self._groups.clear()

    def _pass_prompts(self, work: StepWork) -> None:
        """Spend the step's budget of prompt tokens, first come, first served."""
        budget = self._plan.scheduler.prefill_chunk_tokens
        while budget:
            prompts = self._next_prompts(budget)
            if not prompts:
                return
            self._make_moves(work)
            chunks = [chunk for _, chunk in prompts]
            ended = [prefill for prefill, chunk in prompts if chunk.ends_prompt]
            group = (
                self._make_group(ended[0].row, [one.request for one in ended]) if ended else None
            )
            requests = [self._active(prefill) for prefill in ended]
            work.prefill(self._drafter, chunks, group, requests)
            for prefill, request in zip(ended, requests, strict=True):
                self._start_decoding(request, prefill.row)
            self._make_moves(work)
            budget -= sum(chunk.num_tokens for chunk in chunks)

    def _next_prompts(self, budget: int) -> list[tuple[Prefill, Chunk]]:
        """Chunks for one pass, in neighbouring rows. All but the last end their prompt."""
        found: list[tuple[Prefill, Chunk]] = []
        row = len(self._lineup)
        while budget:
            prefill = self._prefill or self._admit(row)
            if prefill is None:
                break
            while_off = self._steering.while_off
            chunk = prefill.advance(
                min(budget, prefill.num_left),
                extends_draft=self._steering.num_steps > 0 or while_off == "warm",
                may_skip=while_off != "refill",
            )
            found.append((prefill, chunk))
            self._prefill = None if chunk.ends_prompt else prefill
            row = prefill.row + 1
            budget -= chunk.num_tokens
        return found

    def _admit(self, row: int) -> Prefill | None:
        """The next request in `row`, if there is one, and if the rows go so far."""
        if row == self._plan.scheduler.max_running_requests:
            return None
        request = self.admission.admit()
        if request is None:
            return None
        speculates = request.speculation and self._drafter is not None
        return Prefill(request, row, speculates=speculates)

    def _active(self, prefill: Prefill) -> ActiveRequest:
        return ActiveRequest(
            prefill.request,
            Output(prefill.request, self._eos_ids, self._text),
            prefill.bounds,
            speculates=prefill.speculates,
        )

    def _start_decoding(self, request: ActiveRequest, row: int) -> None:
        self._running[request.request.request_id] = request
        self._groups.clear()
        self._moves += self._lineup.add(request, row)

    def _decode(self, work: StepWork) -> None:
        """One round: speculating rows draft if the policy says so, all others decode plainly."""
        self._make_moves(work)
        drafter, speculation = self._drafter, self._plan.speculation
        if drafter is None or speculation is None or not self._lineup.num_speculating:
            self._decode_plainly(work, first=0, keeps_features=False)
        elif self._steering.num_steps:
            self._speculate(work, drafter, speculation)
            self._decode_plainly(work, first=self._lineup.num_speculating, keeps_features=False)
        else:
            keeps_up = self._steering.while_off == "warm"
            if keeps_up:
                speculating = self._lineup.requests[: self._lineup.num_speculating]
                work.keep_up(drafter, self._group(0, len(speculating)), speculating)
            self._decode_plainly(work, first=0, keeps_features=True, keeps_up=keeps_up)

    def _speculate(self, work: StepWork, drafter: Drafter, speculation: SpeculationPlan) -> None:
        requests = self._lineup.requests[: self._lineup.num_speculating]
        if self._steering.while_off == "refill":
            for row, request in enumerate(requests):
                bounds = request.bounds
                if bounds.max_pairs > drafter.most_pairs and bounds.pairs_known:
                    work.refill(drafter, row, bounds, self._plan.scheduler.prefill_chunk_tokens)
        depth = make_depth(speculation, self._steering.num_steps)
        work.speculate(drafter, self._group(0, len(requests)), requests, depth)

    def _decode_plainly(
        self, work: StepWork, *, first: int, keeps_features: bool, keeps_up: bool = False
    ) -> None:
        requests = self._lineup.requests[first:]
        if requests:
            drafter = self._drafter if keeps_features else None
            group = self._group(first, len(self._lineup))
            work.decode_plainly(drafter, group, requests, keeps_up=keeps_up)

    def _make_moves(self, work: StepWork) -> None:
        work.move_rows(self._moves)
        self._moves.clear()

    def _group(self, first: int, last: int) -> Group:
        """Rows [first, last) of the line-up; made once until it changes."""
        if (first, last) not in self._groups:
            requests = [one.request for one in self._lineup.requests[first:last]]
            self._groups[first, last] = self._make_group(first, requests)
        return self._groups[first, last]

    def _make_group(self, first_row: int, requests: list[GenerationRequest]) -> Group:
        device = self._decoder.rows.tokens.device
        return make_group(first_row, requests, self._plan.target.vocab_size, device)
