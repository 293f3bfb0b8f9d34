"""A calibration with made-up round times, in which every depth is best somewhere."""

from collections.abc import Mapping, Sequence

from specserve.calibration.table import Calibration, DepthTimes, Provenance

BATCH_SIZES = (1, 4, 16, 64)
# Seconds by batch size. A small batch is bound by the weights, a large one by its tokens.
ROUND_SECONDS: dict[int, tuple[float, ...]] = {
    0: (0.0100, 0.0104, 0.0120, 0.0200),
    1: (0.0115, 0.0121, 0.0160, 0.0340),
    2: (0.0125, 0.0134, 0.0190, 0.0470),
    3: (0.0135, 0.0147, 0.0220, 0.0600),
}


def make_calibration(
    *,
    topk: int = 1,
    batch_sizes: Sequence[int] = BATCH_SIZES,
    round_seconds: Mapping[int, Sequence[float]] | None = None,
    acceptance: Sequence[float] = (0.7, 0.5, 0.35),
) -> Calibration:
    """`round_seconds` by depth; `acceptance` by position, up to the deepest depth."""
    times = ROUND_SECONDS if round_seconds is None else round_seconds
    verified = 1000
    return Calibration(
        format="specserve-calibration-1",
        provenance=Provenance(
            device="made up",
            driver=None,
            engine="torch",
            versions={},
            attention="sdpa",
            target="none",
            target_hash="",
            draft="none",
            draft_hash="",
            workload="made up",
            date="2026-01-01T00:00:00+00:00",
            command="specserve.testing.calibrations",
        ),
        topk=topk,
        batch_sizes=tuple(batch_sizes),
        depths=tuple(
            DepthTimes(num_steps=num_steps, round_seconds=tuple(seconds))
            for num_steps, seconds in sorted(times.items())
        ),
        verified=verified,
        accepted_by_position=tuple(round(chance * verified) for chance in acceptance),
    )
