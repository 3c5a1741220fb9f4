# SPDX-License-Identifier: BSD-2-Clause
"""The arithmetic of the bench."""

import math
import statistics

CONFIDENCE = 0.95


def interval(values):
    """(lower, upper, confidence) of the median, by order statistics: the innermost pair of
    values, symmetric in order, that has CONFIDENCE.  If no pair has it, the outermost."""
    ordered = sorted(values)
    count = len(ordered)
    outside, best = 0.0, None
    for skipped in range((count + 1) // 2):
        outside += 2 * math.comb(count, skipped) / 2 ** count
        if best is None or 1 - outside >= CONFIDENCE:
            best = ordered[skipped], ordered[count - 1 - skipped], max(0.0, 1 - outside)
    return best


def paired_ratios(speeds):
    """{profiler: [speed / mean of the neighbouring speeds without a profiler]}.

    SPEEDS are (profiler's name, or None without one; speed), in the order of measurement.  Speeds
    without a profiler are compared with their own neighbours in the same way, which shows the
    noise.
    """
    ratios = {}
    bare = [index for index, (name, _) in enumerate(speeds) if name is None]
    for index, (name, speed) in enumerate(speeds):
        before = [other for other in bare if other < index][-1:]
        after = [other for other in bare if other > index][:1]
        if before and after:
            reference = (speeds[before[0]][1] + speeds[after[0]][1]) / 2
            if reference > 0:
                ratios.setdefault(name, []).append(speed / reference)
    return ratios


def shares(amounts):
    total = sum(amounts)
    return [amount / total for amount in amounts] if total else None


def distance(found, truth):
    """Total variation distance of two lists of amounts; None if one of them is empty."""
    if not sum(found) or not sum(truth):
        return None
    return sum(abs(a - b) for a, b in zip(shares(found), shares(truth))) / 2


def distance_floor(truth, samples):
    """The average distance if SAMPLES are drawn without any error."""
    return sum(math.sqrt(2 * share * (1 - share) / (math.pi * samples))
               for share in shares(truth)) / 2


def median(values):
    return statistics.median(values) if values else None
