#!/usr/bin/env python3
"""Every kind of expression beside numpy, on one thread, to find kernels that are slower than they need to be.

Enters: the program `breakeven` (`cargo build --release -p breakeven-cli`), a Python with numpy. Leaves: a table of ratios, the worst
first; exit 1 where results differ.

    python3 benches/sweep.py [--program target/release/breakeven] [--only TEXT] [--rounds 3] [--all]

Both sides evaluate the same text over the same arrays in turns, round by round; the fastest median of the rounds counts on each
side. numpy allocates its results as its users do: from memory that it has just given back.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

# Before numpy is loaded: its products would use all cores.
os.environ.update({name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")})
import numpy as np  # noqa: E402

RNG = np.random.default_rng(7)
N = 1_000_000
SIDE = 1000
ARRAYS = {
    "x": RNG.standard_normal(N).astype(np.float32),
    "y": (RNG.random(N) + 0.5).astype(np.float32),
    "m": RNG.standard_normal((SIDE, SIDE)).astype(np.float32),
    "w": RNG.standard_normal((SIDE, SIDE)).astype(np.float32),
    "s": RNG.standard_normal((30, 30, 1100)).astype(np.float32),
    "r": RNG.standard_normal((30_000, 33)).astype(np.float32),
    "c": RNG.standard_normal((33, 30_000)).astype(np.float32),
    "v": RNG.standard_normal(SIDE).astype(np.float32),
    "i": RNG.integers(-1000, 1000, N).astype(np.int32),
    "j": RNG.integers(1, 1000, N).astype(np.int32),
    "im": RNG.integers(-1000, 1000, (SIDE, SIDE)).astype(np.int32),
    "u": RNG.integers(0, 2**32, N, dtype=np.uint32),
    "b": RNG.random(N) < 0.5,
    "d": RNG.random(N) < 0.5,
    "bm": RNG.random((SIDE, SIDE)) < 0.999,
    "f": np.zeros(N, bool),
    "p": RNG.integers(0, N, N).astype(np.int32),
    "q": RNG.integers(0, SIDE, SIDE).astype(np.int32),
    "h": RNG.standard_normal((64, 32)).astype(np.float32),
    "k": RNG.standard_normal((500, 32, 32)).astype(np.float32),
}


def unary_and_binary():
    for op in ("-x", "abs(x)", "sign(x)", "square(x)", "sqrt(y)", "1 / y", "exp(x)", "log(y)", "log2(y)", "sin(x)", "cos(x)",
               "tan(x)", "tanh(x)", "floor(x)", "ceil(x)", "round(x)", "trunc(x)", "x + y", "x - y", "x * y", "x / y", "y ** x",
               "x ** 2", "y ** 0.5", "y ** 3", "x % y", "x // y", "maximum(x, y)", "minimum(x, y)", "clip(x, -1, 1)",
               "where(x > y, x, y)", "where(b, x, y)", "x + 1", "x * 2 + y"):
        yield op
    for op in ("<", "<=", ">", ">=", "==", "!="):
        yield f"x {op} y"
        yield f"i {op} j"
    for op in ("i + j", "i - j", "i * j", "i // j", "i % j", "-i", "abs(i)", "sign(i)", "i & j", "i | j", "i ^ j", "~i", "i << 3",
               "i >> 3", "maximum(i, j)", "u + u", "u // 7", "u % 7", "u >> 3", "where(b, i, j)", "i / j"):
        yield op
    for op in ("b & d", "b | d", "b ^ d", "~b", "b == d", "where(b, d, f)"):
        yield op
    for op in ("cast(x, i32)", "cast(i, f32)", "cast(b, f32)", "cast(b, i32)", "cast(x, bool)", "cast(i, bool)", "cast(u, f32)"):
        yield op


def reductions():
    for op in ("sum", "prod", "max", "min", "mean", "var", "std", "argmax", "argmin"):
        yield f"{op}(x)"
        for array in "mrcs":
            for axis in range(ARRAYS[array].ndim):
                yield f"{op}({array}, axis={axis})"
    for op in ("sum", "max", "min", "argmax", "prod"):
        yield f"{op}(i)"
        yield f"{op}(im, axis=0)"
        yield f"{op}(im, axis=1)"
    for op in ("any", "all"):
        yield f"{op}(f)"
        yield f"{op}(b)"
        yield f"{op}(bm, axis=0)"
        yield f"{op}(bm, axis=1)"
    yield from ("any(x > 9)", "all(x < 9)", "sum(cast(b, i32))", "sum(s, axis=(0, 2))", "sum(s, axis=(0, 1))", "max(s, axis=(1, 2))")
    for op in ("cumsum", "cumprod"):
        yield f"{op}(y, axis=0)"
        yield f"{op}(m, axis=0)"
        yield f"{op}(m, axis=1)"
        yield f"{op}(r, axis=1)"
        yield f"{op}(c, axis=0)"
    yield from ("cumsum(i, axis=0)", "cumsum(im, axis=0)", "cumsum(im, axis=1)")


def products():
    yield from ("m @ w", "m @ w.T", "m.T @ w", "m @ v", "v @ m", "m.T @ v", "v @ v", "x @ y", "r @ c[:, :100]", "r[:100] @ c",
                "c @ r", "k @ k", "k @ h[:32, :]", "m[:10] @ w", "m @ w[:, :10]", "m[:, :10] @ w[:10, :]", "m[:100, :100] @ w[:100, :100]",
                "dot(x, y)", "relu_(m @ w + v)")


def movement():
    yield from ("m.T + 0", "m.T + w", "m + w.T", "m[::-1] + 0", "m[:, ::-1] + 0", "x[::2] + 0", "x[::-1] + 0", "m[:, ::3] + 0",
                "m[::3] + 0", "m[1:-1, 1:-1] + 0", "reshape(x, (1000, 1000)).T + 0", "permute(s, (2, 0, 1)) + 0",
                "permute(s, (1, 0, 2)) + 0", "permute(s, (0, 2, 1)) + 0", "permute(s, (2, 1, 0)) + 0", "r.T + 0", "c.T + 0",
                "concat((x, y), axis=0)", "concat((m, w), axis=0)", "concat((m, w), axis=1)", "stack((x, y), axis=0)",
                "stack((x, y), axis=1)", "stack((m, w), axis=2)", "stack((m, w), axis=1)", "pad(m, 1)", "pad(x, 5)", "pad(m, ((0, 0), (3, 3)))",
                "tile(v, 1000)", "tile(m, (2, 1))", "tile(m, (1, 2))", "flip(m, 0)", "flip(m, 1)", "rot90(m)", "take(x, p, axis=0)",
                "take(m, q, axis=0)", "take(m, q, axis=1)", "m + v", "m + v[:, None]", "v[:, None] * v[None, :]", "b[::-1] | d",
                "im.T + 0", "bm.T | bm", "i[::2] + j[::2]", "zeros((1000, 1000))", "full((1000, 1000), 3)", "arange(1000000)",
                "windows_(v)", "m[:-1] + m[1:]", "m[:, :-1] + m[:, 1:]", "m[1:, 1:] - m[:-1, :-1]")


def rows():
    yield from ("softmax_(m)", "m - mean(m, axis=1, keepdims=True)", "m - mean(m, axis=0, keepdims=True)",
                "(m - mean(m, axis=0)) / std(m, axis=0)", "m / sqrt(sum(m * m, axis=1, keepdims=True))", "sum(m * w, axis=0)",
                "sum(m * w, axis=1)", "sum(abs(x - y))", "sqrt(sum(square(x - y)))", "max(abs(x))", "sum(where(x > 0, x, 0))",
                "exp(x) / sum(exp(x))", "1 / (1 + exp(-x))", "x * 2 + y * 3 - x * y", "cumsum(x * y, axis=0)", "argmax(m @ w, axis=1)",
                "sum(cast(x > y, i32))", "mean(x > y)")


# Names that both sides have but spell differently, as (ours, numpy's).
SPELLINGS = {
    "relu_(m @ w + v)": ("relu(m @ w + v)", "maximum(m @ w + v, 0)"),
    "windows_(v)": ("windows(v, 100) * 2", "sliding_window_view(v, 100) * 2"),
    "softmax_(m)": ("softmax(m, axis=1)", "softmax(m)"),
}


def names():
    def softmax(m):
        e = np.exp(m - m.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    names = {name: getattr(np, name) for name in dir(np) if not name.startswith("_")}
    names |= ARRAYS | {"cast": lambda x, t: x.astype(t), "f32": np.float32, "i32": np.int32, "bool": np.bool_}
    names |= {"concat": np.concatenate, "permute": np.transpose, "softmax": softmax}
    names |= {"sliding_window_view": np.lib.stride_tricks.sliding_window_view}
    names |= {"zeros": lambda shape: np.zeros(shape, np.float32) + 0, "full": lambda shape, v: np.full(shape, v, np.float32)}
    return names


def numpy_median_ns(code, scope, repeat):
    times = []
    for _ in range(repeat):
        start = time.perf_counter_ns()
        out = eval(code, scope)
        times.append(time.perf_counter_ns() - start)
        del out
    return sorted(times)[len(times) // 2]


def ours(program, text, folder, repeat):
    used = [name for name in ARRAYS if any(token == name for token in tokens(text))]
    command = [program, "eval", text, *(f"{name}={folder}/{name}.npy" for name in used)]
    command += ["-o", f"{folder}/out.npy", "--device", "cpu", "--repeat", str(repeat), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "BREAKEVEN_THREADS": "1"})
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[0])
    return json.loads(done.stdout)["timing"]["median_ns"]


def tokens(text):
    word = ""
    for char in text + " ":
        if char.isalnum() or char == "_":
            word += char
        else:
            yield word
            word = ""


def differ(ours, theirs):
    """Whether results are further apart than rounding and the order of sums allow, against f64 of what numpy gives."""
    if ours.shape != np.shape(theirs):
        return f"shape {ours.shape} instead of {np.shape(theirs)}"
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    both = np.isfinite(ours) & np.isfinite(theirs)
    scale = np.abs(theirs[both]).max(initial=1e-30)
    worst = np.abs(ours[both] - theirs[both]).max(initial=0) / scale
    return f"off by {worst:.1e}" if worst > 2e-4 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="target/release/breakeven")
    parser.add_argument("--only", default="", help="expressions that contain this text")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--all", action="store_true", help="also rows where numpy is slower")
    options = parser.parse_args()
    scope, rows_, wrong = names(), [], []
    moved = set(movement())
    texts = [*unary_and_binary(), *reductions(), *products(), *movement(), *rows()]
    with tempfile.TemporaryDirectory() as folder:
        for name, array in ARRAYS.items():
            np.save(f"{folder}/{name}.npy", array)
        for text in dict.fromkeys(text for text in texts if options.only in text):
            mine, theirs = SPELLINGS.get(text, (text, text))
            if text in moved:
                # numpy's own order of memory is another one, or it moves nothing: whoever needs rows has to ask for them.
                theirs = f"ascontiguousarray({theirs})"
            code = compile(theirs, theirs, "eval")
            with np.errstate(all="ignore"):
                expected = eval(code, scope)
                repeat = 15
                best = [float("inf")] * 2
                try:
                    for _ in range(options.rounds):
                        best[1] = min(best[1], numpy_median_ns(code, scope, repeat))
                        best[0] = min(best[0], ours(options.program, mine, folder, repeat))
                except RuntimeError as error:
                    wrong.append((text, str(error)))
                    continue
            reason = differ(np.load(f"{folder}/out.npy"), expected)
            if reason:
                wrong.append((text, reason))
            rows_.append((best[1] / best[0], text, *best))
            if sys.stderr.isatty():
                print(f"\r{len(rows_)} {text:60}", end="", file=sys.stderr)
    rows_.sort()
    print(f"{'numpy / ours':>12}  {'ours us':>9}  {'numpy us':>9}  expression")
    for ratio, text, mine, theirs in rows_:
        if options.all or ratio < 1:
            print(f"{ratio:12.2f}  {mine / 1000:9.1f}  {theirs / 1000:9.1f}  {text}")
    slower = sum(ratio < 0.95 for ratio, *_ in rows_)
    mean = np.exp(np.mean([np.log(ratio) for ratio, *_ in rows_])) if rows_ else 1
    print(f"{len(rows_)} expressions, {slower} slower than numpy by more than 5 %, geometric mean {mean:.2f}x")
    for text, reason in wrong:
        print(f"wrong: {text}: {reason}")
    return 1 if wrong else 0


sys.exit(main())
