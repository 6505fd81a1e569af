"""Split a batch of JPEGs into parts that a GPU decodes one after the other, and lay them out in its memory."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.jpeg.batches import columns_of
from penstock.kernels.cpu.options import brief, inner, kernel

# The size in bytes of a block's coefficients and of its samples.
_COEFFICIENTS, _SAMPLES = 128, 64
_ALIGNMENT = 256


@kernel
def fill_sizes(blocks: np.ndarray, windows: np.ndarray, channels: int, sizes: np.ndarray, samples: np.ndarray) -> None:
    """Compute the sizes in bytes of images' coefficients and samples.

    Args:
        blocks: the number of blocks of each image.
        windows: the window of pixels (top, left, height, width) of each image, in rows.
        channels: the number of channels of the pixels, which overwrite the coefficients; 0: no pixels are computed.
        sizes, samples: filled with the sizes of coefficients and of samples; int64.
    """
    for index in range(len(blocks)):
        pixels = windows[index, 2] * windows[index, 3] * channels
        sizes[index] = max(blocks[index] * _COEFFICIENTS, -(-pixels // _ALIGNMENT) * _ALIGNMENT)
        samples[index] = blocks[index] * _SAMPLES


@kernel
def cut(sizes: np.ndarray, first: int, last: int, most: int, shares: np.ndarray) -> int:
    """Divide items ``first`` to ``last``, whose sizes are given, into shares of about equal size, at most ``most``.

    A share may exceed ``most`` if an item is larger than half of ``most``.

    Args:
        shares: filled with the begin and end of each share, in rows; has as many rows as there are items.

    Returns:
        The number of shares.
    """
    total, largest = 0, 0
    for index in range(first, last):
        total += sizes[index]
        largest = max(largest, sizes[index])
    # A share exceeds the average size by less than the size of the largest item.
    wanted = -(-total // max(most - largest, most // 2, 1)) if total > most else 1
    made, begin, end, bound = 0, first, 0, 1
    for index in range(first, last):
        end += sizes[index]
        if bound < wanted and end > total / wanted * bound:
            if index > begin:
                shares[made, 0], shares[made, 1] = begin, index
                made += 1
                begin = index
            while bound < wanted and end > total / wanted * bound:
                bound += 1
    shares[made, 0], shares[made, 1] = begin, last
    return made + 1


@brief
def lay_out(
    sizes: np.ndarray,
    samples: np.ndarray,
    parts: np.ndarray,
    most: int,
    sources: np.ndarray,
    planes: np.ndarray,
    rooms: np.ndarray,
    groups: np.ndarray,
) -> int:
    """Lay out each part of a batch in the memory that all parts use in turn: its coefficients, then its samples.

    Args:
        sizes: the size in bytes of each image's coefficients; int64.
        samples: the size in bytes of each image's samples; int64.
        parts: the first image of each part and the end of its images, in rows.
        most: the maximum number of bytes of samples that are in memory at a time.
        sources, planes: filled with the offsets in memory of each image's coefficients and samples.
        rooms: filled with the number of bytes that each part needs.
        groups: filled with the first image and the end of each group of images whose samples are in memory at the same time, in rows; has
            as many rows as there are images.

    Returns:
        The number of groups.
    """
    count = 0
    for part in range(len(parts)):
        first, last = parts[part]
        end = 0
        for index in range(first, last):
            sources[index] = end
            end += sizes[index]
        rooms[part] = end
        made = cut(samples, first, last, most, groups[count:])
        for group in range(count, count + made):
            place = end
            for index in range(groups[group, 0], groups[group, 1]):
                planes[index] = place
                place += samples[index]
            rooms[part] = max(rooms[part], place)
        count += made
    return count


@brief
def plan_parts(
    memory: np.ndarray,
    windows: np.ndarray,
    channels: int,
    most: int,
    most_samples: int,
    sizes: np.ndarray,
    samples: np.ndarray,
    sources: np.ndarray,
    planes: np.ndarray,
    rooms: np.ndarray,
    parts: np.ndarray,
    groups: np.ndarray,
) -> tuple[int, int, int]:
    """Divide a batch into parts whose coefficients take at most ``most`` bytes, and lay them out.

    Args:
        memory: the memory of the scans' descriptions; see :class:`~penstock.kernels.cpu.jpeg.batches.JpegScans`.
        windows, channels, sizes, samples: as for :func:`fill_sizes`.
        parts: filled with the first image of each part and the end of its images, in rows; has as many rows as there are images.
        most_samples, sources, planes, rooms, groups: as for :func:`lay_out`.

    Returns:
        The number of parts, the number of groups, and the number of bytes that the largest part needs.
    """
    fill_sizes(columns_of(memory, len(windows)).blocks, windows, channels, sizes, samples)
    count = cut(sizes, 0, len(windows), most, parts)
    made = lay_out(sizes, samples, parts[:count], most_samples, sources, planes, rooms, groups)
    return count, made, rooms[:count].max()


@inner
def _fill_step(step: np.record, number: int, begin: int, end: int) -> None:
    step.kernel, step.first, step.last = number, begin, end


@brief
def fill_steps(
    parts: np.ndarray, groups: np.ndarray, before: int, of_groups: int, of_parts: int, steps: np.ndarray
) -> int:
    """Fill in the kernel launches that decode one part after the other; return their number.

    A part begins with a launch for all its images, followed by the launches for each of its groups, and those that end the part.

    Args:
        parts, groups: as for :func:`lay_out`.
        before: the number of descriptors of the launch that precedes all parts; 0: there is no such launch.
        of_groups: the number of launches for each group.
        of_parts: the number of launches at the end of each part.
        steps: filled with a ``GPU_STEP`` for each launch.
    """
    made, group, first = 0, 0, 0
    if before > 0:
        _fill_step(steps[0], 0, 0, before)
        made = first = 1
    for part in range(len(parts)):
        begin, end = parts[part]
        _fill_step(steps[made], first, begin, end)
        made += 1
        while group < len(groups) and groups[group, 0] < end:
            for number in range(of_groups):
                _fill_step(steps[made], first + 1 + number, groups[group, 0], groups[group, 1])
                made += 1
            group += 1
        for number in range(of_parts):
            _fill_step(steps[made], first + 1 + of_groups + number, begin, end)
            made += 1
    return made


class Parts:
    """Parts of a batch, which are decoded one after the other in the same memory, and the positions of each image's
    data in that memory.

    Args:
        scans: the memory of the scans' descriptions.
        windows, channels: as for :func:`fill_sizes`.
        most, most_samples: as for :func:`plan_parts`.

    Attributes:
        room: the number of bytes that the largest part needs.
    """

    def __init__(self, scans: np.ndarray, windows: np.ndarray, channels: int, most: int, most_samples: int) -> None:
        count, self._most_samples = len(windows), most_samples
        memory = np.empty((9, count), np.int64)
        self._sources, self._planes, self._sizes, self._samples, self._rooms = memory[:5]
        self._parts, self._groups = memory[5:].reshape(2, count, 2)
        found = self._sizes, self._samples, self._sources, self._planes, self._rooms, self._parts, self._groups
        self._have(*plan_parts(scans, windows, channels, most, most_samples, *found))

    def _have(self, parts: int, groups: int, room: int) -> None:
        self._parts, self._groups, self._rooms = self._parts[:parts], self._groups[:groups], self._rooms[:parts]
        self.room = room

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The offsets of each image's coefficients and samples in memory, and the parts and groups, as for
        :func:`fill_steps`.
        """
        return self._sources, self._planes, self._parts, self._groups

    def steps(self, of_groups: int, is_followed: bool) -> int:
        """Return the number of launches that :func:`fill_steps` fills in; if ``is_followed``, there is one before all parts and one
        at the end of each part.
        """
        return len(self._parts) * (1 + is_followed) + len(self._groups) * of_groups + is_followed

    def halve(self) -> None:
        """Reduce the memory needed: split each of the largest parts in two. Drop those that consist of one image."""
        smaller: list[tuple[int, int]] = []
        for (first, last), room in zip(self._parts.tolist(), self._rooms.tolist()):
            middle = (first + last) // 2
            if room < self.room:
                smaller.append((first, last))
            elif middle > first:
                smaller += (first, middle), (middle, last)
        self._parts = np.array(smaller, np.int64).reshape(-1, 2)
        self._groups, self._rooms = np.empty((len(self._sizes), 2), np.int64), np.empty(len(smaller), np.int64)
        places = self._sizes, self._samples, self._parts, self._most_samples, self._sources, self._planes, self._rooms
        groups = lay_out(*places, self._groups)
        self._have(len(smaller), groups, int(self._rooms.max(initial=0)))
