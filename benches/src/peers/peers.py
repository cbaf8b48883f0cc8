"""One Python library's side of the peer benchmark.

Enters on stdin: one JSON request a line. Leaves on stdout: one JSON answer a line. Started once a library with its
name as the only argument; times are taken in here, around the calls, so that the pipe is not measured.

    {"load": "W1.add", "n": 1000, "inputs": [{"path": "..", "shape": [1000]}, ..]}  ->  {"variants": ["", "out"]}
    {"sample": "out", "warm_up_ns": 250000, "calls": 100}                          ->  {"ns": 640.0}
    {"result": "out", "path": ".."}                                                ->  {"ok": true}, f32 in the file
"""

import json
import os
import sys
import time

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
A, B, C = 1.5, 0.5, 0.25  # the scalars of W2.chain
EPSILON = 1e-5  # of W4.layernorm
GELU = 0.7978845608028654  # sqrt(2 / pi)


def numpy_variants():
    """numpy, composed from its functions as users do, and with `out=` all the way where it has it."""
    import numpy as np

    def gelu(x):
        return 0.5 * x * (1.0 + np.tanh(GELU * (x + 0.044715 * x * x * x)))

    def sigmoid(x):
        return 1.0 / (1.0 + np.exp(-x))

    def softmax(x):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        e /= e.sum(axis=-1, keepdims=True)
        return e

    def softmax_out(x):
        out = np.empty_like(x)

        def run():
            np.subtract(x, x.max(axis=-1, keepdims=True), out=out)
            np.exp(out, out=out)
            return np.divide(out, out.sum(axis=-1, keepdims=True), out=out)

        return run

    def sigmoid_out(x):
        out = np.empty_like(x)

        def run():
            np.negative(x, out=out)
            np.exp(out, out=out)
            np.add(out, 1.0, out=out)
            return np.reciprocal(out, out=out)

        return run

    def layernorm(x, gain, offset):
        centred = x - x.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", centred, centred)[:, None] / x.shape[1]
        centred *= 1.0 / np.sqrt(variance + EPSILON)
        centred *= gain
        centred += offset
        return centred

    def chain(x):
        y = x * A
        y += B
        y *= sigmoid(x)
        y -= C
        np.abs(y, out=y)
        np.sqrt(y, out=y)
        y += x
        return gelu(y)

    def mlp(x, w1, b1, w2, b2, w3, b3):
        h = x @ w1
        h += b1
        np.maximum(h, 0, out=h)
        h = h @ w2
        h += b2
        np.maximum(h, 0, out=h)
        h = h @ w3
        h += b3
        return softmax(h)

    def build(kind, a):
        x = a[0]
        like = np.empty_like
        if kind == "W1.add":
            out = like(x)
            return {"": lambda: x + a[1], "out": lambda: np.add(x, a[1], out=out)}
        if kind == "W1.dot":
            return {"": lambda: np.dot(x, a[1])}
        if kind == "W1.gelu":
            return {"": lambda: gelu(x)}
        if kind in ("W1.relu", "W5.relu256-batched"):
            out = like(x)
            return {"": lambda: np.maximum(x, 0), "out": lambda: np.maximum(x, 0, out=out)}
        if kind == "W1.sigmoid":
            return {"": lambda: sigmoid(x), "out": sigmoid_out(x)}
        if kind in ("W1.softmax", "W4.rowsoftmax"):
            return {"": lambda: softmax(x), "out": softmax_out(x)}
        if kind == "W1.sum":
            return {"": lambda: x.sum()}
        if kind == "W2.chain":
            return {"": lambda: chain(x)}
        if kind in ("W3.matmul", "W5.mm32-batched"):
            out = like(x)
            return {"": lambda: x @ a[1], "out": lambda: np.matmul(x, a[1], out=out)}
        if kind == "W4.layernorm":
            return {"": lambda: layernorm(*a)}
        if kind == "W4.sumaxis0":
            return {"": lambda: x.sum(axis=0)}
        if kind == "W4.sumaxis1":
            return {"": lambda: x.sum(axis=1)}
        if kind == "W5.mm32-loop":
            xs, ys = [m.copy() for m in x], [m.copy() for m in a[1]]
            return {"": lambda: [p @ q for p, q in zip(xs, ys)]}
        if kind == "W5.relu256-loop":
            xs = [v.copy() for v in x]
            return {"": lambda: [np.maximum(v, 0) for v in xs]}
        if kind == "W6.mlp":
            return {"": lambda: mlp(*a)}
        return {}

    def result(value):
        return np.stack(value) if isinstance(value, list) else value

    return np.__version__, lambda a: a, build, result


def numexpr_variants():
    """numexpr: one compiled expression over blocks, for the elementwise kinds."""
    import numexpr as ne
    import numpy as np

    ne.set_num_threads(CORES)
    constants = {name: np.float32(value) for name, value in
                 {"g": GELU, "k": 0.044715, "h": 0.5, "one": 1.0, "a": A, "b": B, "c": C}.items()}
    sigmoid = "one / (one + exp(-x))"
    gelu = "h * {0} * (one + tanh(g * ({0} + k * {0} * {0} * {0})))"
    inner = f"(sqrt(abs((x * a + b) * ({sigmoid}) - c)) + x)"
    formulas = {
        "W1.add": "x + y",
        "W1.gelu": gelu.format("x"),
        "W1.relu": "where(x > 0, x, x * 0)",
        "W1.sigmoid": sigmoid,
        "W2.chain": gelu.format(inner),  # numexpr computes equal subexpressions once
    }

    def build(kind, arrays):
        if kind not in formulas:
            return {}
        names = dict(constants, x=arrays[0])
        if kind == "W1.add":
            names["y"] = arrays[1]
        out = np.empty_like(arrays[0])

        def run(**keywords):
            return ne.evaluate(formulas[kind], names, {}, **keywords)

        return {"": run, "out": lambda: run(out=out)}

    return ne.__version__, lambda a: a, build, lambda value: value


def jax_variants():
    """JAX on the CPU, every kind as one jitted function; each call waits for its result."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp
    import numpy as np

    def chain(x):
        return jax.nn.gelu(jnp.sqrt(jnp.abs((x * A + B) * jax.nn.sigmoid(x) - C)) + x, approximate=True)

    def layernorm(x, gain, offset):
        mean = x.mean(axis=1, keepdims=True)
        variance = ((x - mean) ** 2).mean(axis=1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + EPSILON) * gain + offset

    def mlp(x, w1, b1, w2, b2, w3, b3):
        h = jnp.maximum(x @ w1 + b1, 0)
        h = jnp.maximum(h @ w2 + b2, 0)
        return jax.nn.softmax(h @ w3 + b3, axis=-1)

    functions = {
        "W1.add": lambda x, y: x + y,
        "W1.dot": jnp.dot,
        "W1.gelu": lambda x: jax.nn.gelu(x, approximate=True),
        "W1.relu": lambda x: jnp.maximum(x, 0),
        "W1.sigmoid": jax.nn.sigmoid,
        "W1.softmax": jax.nn.softmax,
        "W1.sum": jnp.sum,
        "W2.chain": chain,
        "W3.matmul": jnp.matmul,
        "W4.rowsoftmax": jax.nn.softmax,
        "W4.layernorm": layernorm,
        "W4.sumaxis0": lambda x: x.sum(axis=0),
        "W4.sumaxis1": lambda x: x.sum(axis=1),
        "W5.mm32-batched": jnp.matmul,
        "W5.mm32-loop": jnp.matmul,
        "W5.relu256-batched": lambda x: jnp.maximum(x, 0),
        "W5.relu256-loop": lambda x: jnp.maximum(x, 0),
        "W6.mlp": mlp,
    }

    def build(kind, arrays):
        compiled = jax.jit(functions[kind])
        if kind.endswith("-loop"):
            tasks = [[jnp.array(task) for task in np.asarray(array)] for array in arrays]
            return {"jit": lambda: jax.block_until_ready([compiled(*task) for task in zip(*tasks)])}
        return {"jit": lambda: compiled(*arrays).block_until_ready()}

    def result(value):
        return np.stack([np.asarray(v) for v in value]) if isinstance(value, list) else np.asarray(value)

    return jax.__version__, lambda arrays: [jnp.array(array) for array in arrays], build, result


def torch_variants():
    """torch on the CPU in inference mode, with `out=` where it has it, and torch.compile for the chain."""
    import numpy as np
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(CORES)
    torch.inference_mode(True).__enter__()

    def chain(x):
        return F.gelu(torch.sqrt(torch.abs((x * A + B) * torch.sigmoid(x) - C)) + x, approximate="tanh")

    def mlp(x, w1, b1, w2, b2, w3, b3):
        h = torch.relu_(torch.addmm(b1, x, w1))
        h = torch.relu_(torch.addmm(b2, h, w2))
        return torch.softmax(torch.addmm(b3, h, w3), dim=-1)

    def build(kind, a):
        x = a[0]
        out = torch.empty_like(x)
        if kind == "W1.add":
            return {"": lambda: torch.add(x, a[1]), "out": lambda: torch.add(x, a[1], out=out)}
        if kind == "W1.dot":
            return {"": lambda: torch.dot(x, a[1])}
        if kind == "W1.gelu":
            return {"": lambda: F.gelu(x, approximate="tanh"),
                    "out": lambda: torch.ops.aten.gelu.out(x, approximate="tanh", out=out)}
        if kind in ("W1.relu", "W5.relu256-batched"):
            return {"": lambda: torch.relu(x), "out": lambda: torch.clamp_min(x, 0, out=out)}
        if kind == "W1.sigmoid":
            return {"": lambda: torch.sigmoid(x), "out": lambda: torch.sigmoid(x, out=out)}
        if kind in ("W1.softmax", "W4.rowsoftmax"):
            return {"": lambda: torch.softmax(x, dim=-1), "out": lambda: torch.softmax(x, dim=-1, out=out)}
        if kind == "W1.sum":
            return {"": lambda: torch.sum(x)}
        if kind == "W2.chain":
            variants = {"": lambda: chain(x)}
            try:
                compiled = torch.compile(chain, dynamic=False)
                compiled(x)
                variants["compile"] = lambda: compiled(x)
            except Exception as error:  # no C++ compiler, for one
                print(f"torch.compile is left out: {error}", file=sys.stderr)
            return variants
        if kind == "W3.matmul":
            return {"": lambda: torch.mm(x, a[1]), "out": lambda: torch.mm(x, a[1], out=out)}
        if kind == "W5.mm32-batched":
            return {"": lambda: torch.bmm(x, a[1]), "out": lambda: torch.bmm(x, a[1], out=out)}
        if kind == "W4.layernorm":
            return {"": lambda: F.layer_norm(x, x.shape[1:], a[1], a[2], EPSILON)}
        if kind == "W4.sumaxis0":
            return {"": lambda: torch.sum(x, dim=0)}
        if kind == "W4.sumaxis1":
            return {"": lambda: torch.sum(x, dim=1)}
        if kind == "W5.mm32-loop":
            xs, ys = [m.clone() for m in x], [m.clone() for m in a[1]]
            return {"": lambda: [torch.mm(p, q) for p, q in zip(xs, ys)]}
        if kind == "W5.relu256-loop":
            xs = [v.clone() for v in x]
            return {"": lambda: [torch.relu(v) for v in xs]}
        if kind == "W6.mlp":
            return {"": lambda: mlp(*a)}
        return {}

    def result(value):
        return (torch.stack(value) if isinstance(value, list) else value).numpy()

    return torch.__version__, lambda arrays: [torch.from_numpy(array.copy()) for array in arrays], build, result


def timed(run, warm_up_ns, calls):
    """Nanoseconds a call, after untimed calls."""
    clock = time.perf_counter_ns
    start = clock()
    run()
    while clock() - start < warm_up_ns:
        run()
    start = clock()
    for _ in range(calls):
        run()
    return (clock() - start) / calls


def main():
    # Libraries that print must not break the protocol.
    answers, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr
    os.dup2(2, 1)

    def answer(**fields):
        answers.write(json.dumps(fields) + "\n")
        answers.flush()

    libraries = {"numpy": numpy_variants, "numexpr": numexpr_variants, "jax": jax_variants, "torch": torch_variants}
    try:
        import numpy as np
        version, convert, build, result = libraries[sys.argv[1]]()
    except ImportError as error:
        return answer(missing=str(error))
    answer(version=version)
    variants = {}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "load" in request:
                arrays = [np.fromfile(i["path"], np.float32).reshape(i["shape"]) for i in request["inputs"]]
                variants = build(request["load"], convert(arrays))
                answer(variants=list(variants))
            elif "sample" in request:
                answer(ns=timed(variants[request["sample"]], request["warm_up_ns"], request["calls"]))
            elif "result" in request:
                value = result(variants[request["result"]]())
                np.ascontiguousarray(value, np.float32).tofile(request["path"])
                answer(ok=True)
        except Exception as error:
            answer(error=f"{type(error).__name__}: {error}")


main()
