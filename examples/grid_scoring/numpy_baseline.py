"""The plain numpy way: one grid at a time, one step after the other. A job enters as JSON on stdin
(`{"programs": [text, ..], "samples": [{"input": rows, "output": rows}, ..], "deadline": seconds}`), outcomes and
the time of the loop leave as JSON on stdout: `{"seconds": s, "numpy": version, "outcomes": [[kind, equal cells, equal
colours], ..]}`, programs outermost; kind is 0 (scored), 1 (failed) or 2 (late).
"""

import json
import sys
import time

import numpy as np

LIMIT = 30


class Failed(Exception):
    pass


class Late(Exception):
    pass


def checked(grid):
    if max(grid.shape) > LIMIT:
        raise Failed
    return grid


def recolour(grid, pairs):
    table = np.arange(10, dtype=np.int32)
    for pair in pairs:
        before, after = pair.split("->")
        table[int(before)] = int(after)
    return table[grid]


def spread(grid, colour):
    near = np.zeros(grid.shape, dtype=bool)
    ink = grid == colour
    near[1:] |= ink[:-1]
    near[:-1] |= ink[1:]
    near[:, 1:] |= ink[:, :-1]
    near[:, :-1] |= ink[:, 1:]
    return np.where(near & (grid == 0), colour, grid)


def fall(grid):
    above = np.zeros_like(grid)
    above[1:] = grid[:-1]
    free_below = np.zeros(grid.shape, dtype=bool)
    free_below[:-1] = grid[1:] == 0
    return np.where(grid == 0, above, np.where(free_below, 0, grid))


def crop_bbox(grid):
    rows = np.flatnonzero(grid.any(axis=1))
    columns = np.flatnonzero(grid.any(axis=0))
    if rows.size == 0:
        raise Failed
    return grid[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def crop(grid, top, left, height, width):
    if top + height > grid.shape[0] or left + width > grid.shape[1]:
        raise Failed
    return grid[top : top + height, left : left + width]


def labels_of(grid):
    """Labels spread until nothing changes; a region has the largest of its cells, which is that of its first cell."""
    count = grid.size
    labels = np.where(grid != 0, count - np.arange(count).reshape(grid.shape), 0)
    down = (grid[1:] == grid[:-1]) & (grid[1:] != 0)
    right = (grid[:, 1:] == grid[:, :-1]) & (grid[:, 1:] != 0)
    while True:
        made = labels.copy()
        made[1:] = np.maximum(made[1:], np.where(down, labels[:-1], 0))
        made[:-1] = np.maximum(made[:-1], np.where(down, labels[1:], 0))
        made[:, 1:] = np.maximum(made[:, 1:], np.where(right, labels[:, :-1], 0))
        made[:, :-1] = np.maximum(made[:, :-1], np.where(right, labels[:, 1:], 0))
        if np.array_equal(made, labels):
            return labels
        labels = made


def regions(grid, what):
    labels = labels_of(grid)
    sizes = np.bincount(labels.ravel(), minlength=grid.size + 1)
    sizes[0] = 0
    if what == "count_regions":
        return np.array([[min(np.count_nonzero(sizes), 9)]], dtype=np.int32)
    if what == "regions_by_size":
        return np.minimum(sizes[labels], 9)
    # Of regions of one size the first has the largest label.
    largest = len(sizes) - 1 - np.argmax(sizes[::-1])
    if sizes[largest] == 0:
        return np.zeros_like(grid)
    return np.where(labels == largest, grid, 0)


def loop(body, until, grid, deadline):
    turn = 0
    while True:
        made = grid
        for step in body:
            made = step(made, None, deadline)
        stable = np.array_equal(made, grid)
        grid, turn = made, turn + 1
        if stable or turn == until:
            return grid
        if time.perf_counter() > deadline:
            raise Late


TURNS = {
    "rot90": lambda g: np.rot90(g, -1),
    "rot180": lambda g: np.rot90(g, 2),
    "rot270": lambda g: np.rot90(g, 1),
    "flip_h": np.fliplr,
    "flip_v": np.flipud,
    "transpose": np.transpose,
    "anti_transpose": lambda g: np.rot90(g, 2).T,
}


def compare(grid, origin, colour):
    if grid.shape != origin.shape:
        raise Failed
    return np.where(grid == origin, grid, colour)


def step_of(text):
    """A step as a function of the grid, the task's input and the deadline."""
    if "{" in text:
        head, body = text.rstrip("} ").split("{")
        steps = [step_of(part.strip()) for part in body.split("|")]
        words = head.split()
        until = int(words[1]) if words[0] == "repeat" else None
        return lambda g, o, d: loop(steps, until, g, d)
    name, *words = text.split()
    if name in TURNS:
        turn = TURNS[name]
        return lambda g, o, d: turn(g)
    if name == "recolour":
        return lambda g, o, d: recolour(g, words)
    numbers = [int(word) for word in words]
    return {
        "id": lambda g, o, d: g,
        "mask": lambda g, o, d: np.where(g == numbers[0], g, 0),
        "spread": lambda g, o, d: spread(g, numbers[0]),
        "fall": lambda g, o, d: fall(g),
        "crop": lambda g, o, d: crop(g, *numbers),
        "crop_bbox": lambda g, o, d: crop_bbox(g),
        "pad": lambda g, o, d: checked(np.pad(g, numbers[0], constant_values=numbers[1])),
        "tile": lambda g, o, d: checked(np.tile(g, numbers)),
        "count": lambda g, o, d: np.array([[min(np.count_nonzero(g == numbers[0]), 9)]], dtype=np.int32),
        "count_colours": lambda g, o, d: np.minimum(np.bincount(g.ravel(), minlength=10), 9).reshape(1, 10),
        "compare": lambda g, o, d: compare(g, o, numbers[0]),
        "largest_region": lambda g, o, d: regions(g, name),
        "regions_by_size": lambda g, o, d: regions(g, name),
        "count_regions": lambda g, o, d: regions(g, name),
    }[name]


def split(text):
    """The parts between bars that stand in no loop."""
    parts, depth, begin = [], 0, 0
    for at, sign in enumerate(text):
        depth += (sign == "{") - (sign == "}")
        if sign == "|" and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return [part.strip() for part in parts + [text[begin:]]]


def score(steps, origin, expected, limit):
    deadline = time.perf_counter() + limit
    grid = origin
    try:
        for step in steps:
            grid = step(grid, origin, deadline)
    except Failed:
        return [1, 0, 0]
    except Late:
        return [2, 0, 0]
    equal = int(np.count_nonzero(grid == expected)) if grid.shape == expected.shape else 0
    counts = np.bincount(grid.ravel(), minlength=10) == np.bincount(expected.ravel(), minlength=10)
    return [0, equal, int(np.count_nonzero(counts))]


def main():
    job = json.load(sys.stdin)
    programs = [[step_of(part) for part in split(text)] for text in job["programs"]]
    as_grid = lambda rows: np.array(rows, dtype=np.int32)
    samples = [(as_grid(sample["input"]), as_grid(sample["output"])) for sample in job["samples"]]
    begun = time.perf_counter()
    outcomes = [score(steps, origin, expected, job["deadline"]) for steps in programs for origin, expected in samples]
    seconds = time.perf_counter() - begun
    json.dump({"seconds": seconds, "numpy": np.__version__, "outcomes": outcomes}, sys.stdout)


if __name__ == "__main__":
    main()
