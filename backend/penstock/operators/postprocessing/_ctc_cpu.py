"""Decoding connectionist temporal classification: the best path, and prefix beam search."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.options import inner, kernel
from penstock.kernels.cpu.parts import elements_at
from penstock.operators.postprocessing._axis_cpu import exponential


@inner
def _fill_logarithms(scores: np.ndarray, first: int, classes: int, are_probabilities: bool, logs: np.ndarray) -> int:
    """Fill ``logs``, float64 of shape (classes,), with the logarithms of one step's probabilities.

    Returns the first class whose score is not usable: NaN, inf, or a negative probability; 0 if no class is possible; else -1.
    """
    best = -math.inf
    for i in range(classes):
        score = np.float64(scores[first + i])
        if not score < math.inf or (are_probabilities and score < 0):
            return i
        logs[i] = score
        best = max(best, score)
    if best == -math.inf or (are_probabilities and best == 0):
        return 0
    if are_probabilities:
        for i in range(classes):
            logs[i] = math.log(logs[i]) if logs[i] > 0 else -math.inf
        return -1
    total = 0.0
    for i in range(classes):
        total += math.exp(logs[i] - best)
    shift = best + math.log(total)
    for i in range(classes):
        logs[i] -= shift
    return -1


@inner
def _sum_of(a: float, b: float) -> float:
    """Return ``log(exp(a) + exp(b))``."""
    if a < b:
        a, b = b, a
    return a if b == -math.inf else a + math.log1p(math.exp(b - a))


@inner
def _unusable(row: np.ndarray, are_probabilities: bool) -> int:
    """Return the same class, or -1, as :func:`_fill_logarithms` for the scores of a step."""
    lowest = np.float32(0) if are_probabilities else np.float32(-math.inf)
    bad, above = np.int32(0), np.int32(0)
    for i in range(row.size):
        bad += np.int32(not (row[i] < np.float32(math.inf))) | np.int32(row[i] < lowest)
        above += np.int32(row[i] > lowest)
    if bad:
        for i in range(row.size):
            if not row[i] < math.inf or row[i] < lowest:
                return i
    return -1 if above else 0


@inner
def _highest(row: np.ndarray) -> int:
    """Return the class with the highest score of a step, the first if several are equal."""
    most = row[0]
    for i in range(row.size):
        most = max(most, row[i])
    best = 0
    while row[best] != most:
        best += 1
    return best


@inner
def _logarithm_of_highest(row: np.ndarray, best: float, are_probabilities: bool) -> float:
    """Return the logarithm of the probability of a step's highest score."""
    if are_probabilities:
        return math.log(np.float64(best))
    shares = np.empty(row.size, np.float32)
    for i in range(row.size):
        shares[i] = exponential(np.float64(row[i]) - np.float64(best))
    total = 0.0
    for share in shares:
        total += np.float64(share)
    return -math.log(total)


@kernel
def follow_best_path(
    sources: np.ndarray,
    steps: np.ndarray,
    token_firsts: np.ndarray,
    classes: np.ndarray,
    blanks: np.ndarray,
    are_probabilities: bool,
    begin: int,
    end: int,
    tokens: np.ndarray,
    confidences: np.ndarray,
    counts: np.ndarray,
    totals: np.ndarray,
    faults: np.ndarray,
) -> None:
    """Take the best class of each step (the first if several are equal), and drop repetitions and blanks.

    Args:
        sources: the address of each sample's scores, float32, a row of classes for each step.
        steps: number of steps to read of each sample.
        token_firsts: start of each sample's tokens in the outputs.
        classes: number of classes of each sample.
        blanks: the class that is the blank, for each sample.
        are_probabilities: whether scores are probabilities, rather than logits or logarithms.
        begin, end: the range of samples to decode.
        tokens: output, int32: the classes of the text.
        confidences: output, float32: the probability of each token in the step in which it begins.
        counts: output: the number of tokens of each sample.
        totals: output, float32: the logarithm of the probability of each sample's path.
        faults: output: the position in each sample of the first score that is not usable, or -1.
    """
    for sample in range(begin, end):
        count, target = classes[sample], token_firsts[sample]
        found, total, before = 0, 0.0, -1
        faults[sample] = -1
        scores = elements_at(sources[sample], steps[sample] * count, np.float32(0))
        for step in range(steps[sample]):
            row = scores[step * count : (step + 1) * count]
            bad = _unusable(row, are_probabilities)
            if bad >= 0:
                faults[sample] = step * count + bad
                break
            best = _highest(row)
            likely = _logarithm_of_highest(row, row[best], are_probabilities)
            total += likely
            if best != before and best != blanks[sample]:
                tokens[target + found], confidences[target + found] = best, math.exp(likely)
                found += 1
            before = best
        counts[sample], totals[sample] = found, total


@kernel
def search_prefixes(
    sources: np.ndarray,
    steps: np.ndarray,
    token_firsts: np.ndarray,
    classes: np.ndarray,
    blanks: np.ndarray,
    are_probabilities: bool,
    width: int,
    begin: int,
    end: int,
    tokens: np.ndarray,
    confidences: np.ndarray,
    counts: np.ndarray,
    totals: np.ndarray,
    faults: np.ndarray,
) -> None:
    """Find the most probable text of each sample, keeping only the ``width`` most probable prefixes after each step.

    The probability of a prefix is the sum of those of all paths that produce it. ``totals`` receives the logarithms of the
    texts' probabilities; the other arguments are those of :func:`follow_best_path`.
    """
    for sample in range(begin, end):
        count, amount, blank = classes[sample], steps[sample], blanks[sample]
        faults[sample] = -1
        scores = elements_at(sources[sample], amount * count, np.float32(0))
        # The texts that were among the best at some step, as a tree; 0 is the empty one.
        nodes = amount * width + 1
        token, parent = np.full(nodes, -1, np.int32), np.full(nodes, -1, np.int64)
        child, sibling = np.full(nodes, -1, np.int64), np.full(nodes, -1, np.int64)
        confidence, place = np.zeros(nodes, np.float32), np.full(nodes, -1, np.int64)
        used = 1
        # For each of the best texts: its node, and the log-probabilities of its paths that end in a blank and in a token.
        kept, held = np.zeros(width, np.int64), 1
        with_blank, with_token = np.full(width, -math.inf), np.full(width, -math.inf)
        with_blank[0], place[0] = 0.0, 0
        stay_blank, stay_token = np.empty(width), np.empty(width)
        logs = np.empty(count, np.float64)
        best_classes = np.empty(min(width + 1, count), np.int64)
        # The best candidates after a step: the log-probability, the text that each comes from, and the class that extends this
        # text; -1: the text stays as it is.
        new_total, new_base, new_class = np.empty(width), np.empty(width, np.int64), np.empty(width, np.int64)
        new_kept, new_blank, new_token = np.empty(width, np.int64), np.empty(width), np.empty(width)
        for step in range(amount):
            bad = _fill_logarithms(scores, step * count, count, are_probabilities, logs)
            if bad >= 0:
                faults[sample] = step * count + bad
                break
            # List the most probable classes: with any other class, a text cannot be among the best.
            listed = 0
            for i in range(count):
                if i == blank or (listed == len(best_classes) and not logs[i] > logs[best_classes[listed - 1]]):
                    continue
                listed = min(listed + 1, len(best_classes))
                at = listed - 1
                while at > 0 and logs[i] > logs[best_classes[at - 1]]:
                    best_classes[at] = best_classes[at - 1]
                    at -= 1
                best_classes[at] = i
            for b in range(held):
                own = token[kept[b]]
                stay_blank[b] = _sum_of(with_blank[b], with_token[b]) + logs[blank]
                stay_token[b] = with_token[b] + logs[own] if own >= 0 else -math.inf
            # If a text's prefix is among the best, too, extending the prefix gives further paths of the text.
            for b in range(held):
                node = kept[b]
                base = place[parent[node]] if parent[node] >= 0 else -1
                if base >= 0:
                    repeats = token[kept[base]] == token[node]
                    before = with_blank[base] if repeats else _sum_of(with_blank[base], with_token[base])
                    stay_token[b] = _sum_of(stay_token[b], before + logs[token[node]])
            found = 0
            for b in range(held):
                node = kept[b]
                total = _sum_of(with_blank[b], with_token[b])
                # -1: the text stays as it is; `listed`: the text's last class is repeated, which needs a blank before it; other
                # numbers: a listed class extends the text.
                for number in range(-1, listed + 1):
                    if number < 0:
                        extension, value = -1, _sum_of(stay_blank[b], stay_token[b])
                    elif number < listed:
                        extension = best_classes[number]
                        value = total + logs[extension]
                        if extension == token[node]:
                            continue
                    elif token[node] >= 0:
                        extension, value = token[node], with_blank[b] + logs[token[node]]
                    else:
                        continue
                    if value == -math.inf or (found == width and not value > new_total[width - 1]):
                        continue
                    if extension >= 0:
                        known = child[node]
                        while known >= 0 and token[known] != extension:
                            known = sibling[known]
                        if known >= 0 and place[known] >= 0:
                            continue
                    found = min(found + 1, width)
                    at = found - 1
                    while at > 0 and value > new_total[at - 1]:
                        new_total[at], new_base[at], new_class[at] = (
                            new_total[at - 1],
                            new_base[at - 1],
                            new_class[at - 1],
                        )
                        at -= 1
                    new_total[at], new_base[at], new_class[at] = value, b, extension
            for number in range(found):
                b, extension = new_base[number], new_class[number]
                node = kept[b]
                if extension < 0:
                    new_kept[number], new_blank[number], new_token[number] = node, stay_blank[b], stay_token[b]
                    continue
                known = child[node]
                while known >= 0 and token[known] != extension:
                    known = sibling[known]
                if known < 0:
                    known = used
                    used += 1
                    token[known], parent[known], sibling[known], child[node] = extension, node, child[node], known
                confidence[known] = math.exp(logs[extension])
                new_kept[number], new_blank[number], new_token[number] = known, -math.inf, new_total[number]
            for b in range(held):
                place[kept[b]] = -1
            held = found
            for b in range(held):
                kept[b], with_blank[b], with_token[b] = new_kept[b], new_blank[b], new_token[b]
                place[kept[b]] = b
        length, node = 0, kept[0]
        while parent[node] >= 0:
            length, node = length + 1, parent[node]
        node = kept[0]
        for i in range(length):
            at = token_firsts[sample] + length - 1 - i
            tokens[at], confidences[at] = token[node], confidence[node]
            node = parent[node]
        counts[sample], totals[sample] = length, _sum_of(with_blank[0], with_token[0])
