#!/usr/bin/env python3
"""Options that may be set in more than one place: what each does, in which order places count, and what is said of wrong values.

usage: options.py PITH SOURCE_DIR [unittest arguments]; needs NumPy (tests/requirements.txt) and the default model.
"""
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree
from pathlib import Path

import numpy as np
import onnxruntime

from command import PITH, SOURCE, THREAD_SANITIZED, Command

sys.path.insert(0, str(SOURCE / "tools"))
import options as table

DATA = SOURCE / "tests/data"
ROWS = table.rows()
USERS = table.verbs()
BERT = DATA / "models/bert-base-script17-sdpa/model.onnx"
YUNET = DATA / "yunet/yunet-s-640-other-sizes/model.onnx"
LABELS, CROSS = DATA / "tasks/labels-bert", DATA / "tasks/cross-bert"
LINES = [f"word {i} of a longer line" * (1 + i % 5) for i in range(64)]


class Options(Command):
    def setUp(self):
        super().setUp()
        self.write("lines.txt", *LINES)
        self.settings = {**os.environ, "XDG_CONFIG_HOME": str(self.dir)}
        self.settings.pop("PITH_CONFIG", None)

    def write(self, name, *lines):
        (self.dir / name).parent.mkdir(exist_ok=True)
        (self.dir / name).write_text("".join(f"{line}\n" for line in lines))

    def config(self, **values):
        self.write("pith/config.json", json.dumps(values))

    def run_pith(self, *arguments, env=None, **keywords):
        return super().run_pith(*arguments, env={**self.settings, **(env or {})}, **keywords)

    def counted(self, *arguments, verb="embed", env=None, stdin=None):
        """What the model counted in a run on lines.txt, in one call."""
        inputs = () if stdin is not None or verb == "similarity" else ("lines.txt", "-o", "v.npy", "--format", "npy")
        result = self.run_pith(*arguments, *inputs, "--stats-file", "stats.json", verb=verb, env=env, stdin=stdin)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        return json.loads((self.dir / "stats.json").read_text())["statistics"]

    def threads(self, *arguments, **keywords):
        """The threads that a run asked for."""
        counted = self.counted(*arguments, **keywords)
        return round(counted["thread_ns"] / counted["busy_ns"])

    def info(self):
        return json.loads(self.good("--json", verb="info"))

    def slowly(self, *parts, arguments=()):
        """What is counted while texts come in parts, with pauses between them."""
        with subprocess.Popen([PITH, "embed", "--stats-file", "stats.json", *arguments], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, cwd=self.dir, env=self.settings) as process:
            for part, pause in parts:
                process.stdin.write("".join(f"{line}\n" for line in part).encode())
                process.stdin.flush()
                for _ in part:
                    process.stdout.readline()
                time.sleep(pause)
            process.stdin.close()
            self.assertEqual(process.wait(), 0)
        return json.loads((self.dir / "stats.json").read_text())["statistics"]


class Effects(Options):
    """Each option changes what can be seen. The names of these tests stand in options.def."""

    def test_threads(self):
        cores = self.info()["processor"]["cores"]
        self.assertEqual(self.threads("--threads", cores + 1), cores + 1)
        self.assertEqual(self.threads("-t", "1"), 1)

    def test_cores_and_all_threads(self):
        found = self.info()["processor"]
        usual = min(found["cores"], found["usable_threads"])
        self.assertEqual(self.threads(), usual)
        self.assertEqual(self.threads("-t", "cores"), usual)
        self.assertEqual(self.threads("-t", "max"), found["hardware_threads"])

    def tasks(self, verb, *arguments):
        """The threads of a process that has worked and waits for more, each with the CPUs it may use."""
        with subprocess.Popen([PITH, verb, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self.dir,
                              env=self.settings) as process:
            for _ in range(3):
                process.stdin.write(("a few words of a text " * 20 + "\n").encode() * 300)
                process.stdin.flush()
                for _ in range(300):
                    process.stdout.readline()
            cpus = [next(line.split()[1] for line in (task / "status").read_text().splitlines() if line.startswith("Cpus_allowed_list"))
                    for task in Path(f"/proc/{process.pid}/task").iterdir()]
            process.stdin.close()
            self.assertEqual(process.wait(), 0)
        return cpus

    def test_threads_of_tokenize(self):
        self.assertEqual(len(self.tasks("tokenize", "--count", "-t", "1")), 1)
        self.assertIn(len(self.tasks("tokenize", "--count", "-t", "5")), (5, 6) if THREAD_SANITIZED else (5,))  # it has a thread of its own

    def test_pin(self):
        arguments = ("-m", str(DATA / "encode/splade-max"), "--sparse", "-t", "2")
        with_pin = self.tasks("embed", *arguments, "--pin")
        if len(os.sched_getaffinity(0)) > 1:
            self.assertTrue(any(cpus.isdigit() for cpus in with_pin), with_pin)
            self.assertFalse(any(cpus.isdigit() for cpus in self.tasks("embed", *arguments, "--no-pin")))

    def test_optimization(self):
        written, made = (self.good("--ops", *flags, BERT, verb="inspect") for flags in (("--optimization", "0"), ()))
        self.assertGreater(written.count(b"\n"), 1.5 * made.count(b"\n"))
        self.assertEqual(self.good("--ops", "--level", "0", BERT, verb="inspect"), written)

    def test_check(self):
        self.good(BERT, "-o", "m.pith", "-q", verb="compile")
        self.good("m.pith", "--no-check", verb="inspect")
        self.bad(1, "m.pith", "--check", verb="inspect", says="does not hold the graph as written")

    def test_precision(self):
        exact, rounded = (np.array(self.rows("--precision", how, stdin=b"a cat\n")) for how in ("f32", "int8"))
        self.assertFalse(np.array_equal(exact, rounded))
        np.testing.assert_allclose(exact, rounded, atol=0.05)

    def test_precision_of_compile(self):
        sizes = []
        for how in ("f32", "bf16"):
            self.good("-m", LABELS, "--precision", how, "-o", f"{how}.pith", "-q", verb="compile")
            sizes.append((self.dir / f"{how}.pith").stat().st_size)
        self.assertNotEqual(*sizes)

    def test_deterministic(self):
        self.bad(2, "--precision", "bf16", "--deterministic", stdin=b"a\n", says="vectors depend on the processor")
        self.good("--precision", "bf16", "--no-deterministic", stdin=b"a\n")

    def test_arena(self):
        """Without it each activation of a run is allocated for its step."""
        counted = [self.counted("--max-pool-size", "0", flag) for flag in ("--arena", "--no-arena")]
        self.assertGreater(counted[1]["allocations"], counted[0]["allocations"] + 100)

    def test_plan_reuse(self):
        self.write("lines.txt", *["the same"] * 100)
        counted = [self.counted("-t", "1", "--max-batch-size", "10", flag) for flag in ("--plan-reuse", "--no-plan-reuse")]
        self.assertGreater(counted[1]["plans_made"], 2 * counted[0]["plans_made"])

    def test_inter_op_threads(self):
        """The heads of YuNet are branches; their numbers stay what they are."""
        np.save(self.dir / "x.npy", np.random.default_rng(7).random((1, 3, 640, 640), np.float32))
        found = []
        for threads in ("1", "2"):
            self.options = ()
            self.good(YUNET, "-i", "input=x.npy", "-o", f"out{threads}", "-t", "2", "--inter-op-threads", threads, "--stats-file", "stats.json", verb="run")
            found.append(json.loads((self.dir / "stats.json").read_text())["statistics"]["branches"])
        self.assertEqual(found[0], 0)
        self.assertGreater(found[1], 1)
        for name in sorted((self.dir / "out1").iterdir()):
            self.assertEqual(name.read_bytes(), (self.dir / "out2" / name.name).read_bytes(), name.name)

    def test_memory_limit(self):
        self.bad(1, "--memory-limit", "20000k", stdin=b"a\n", says="the memory limit is 20480000 bytes")

    def test_memory_prediction(self):
        self.write("lines.txt", *LINES * 5)
        counted = [self.counted("-t", "2", "--memory-limit", "47M", flag) for flag in ("--memory-prediction", "--no-memory-prediction")]
        self.assertGreater(counted[0]["batches_predicted_smaller"], 0)
        self.assertEqual(counted[1]["batches_predicted_smaller"], 0)

    def test_memory_pressure_threshold(self):
        parts = ((LINES[:4], 1.2), (LINES[:4], 0))  # memory is looked at once a second
        self.assertGreater(self.slowly(*parts, arguments=("--memory-pressure-threshold", "0.01"))["pressure_cleanups"], 0)
        self.assertEqual(self.slowly(*parts, arguments=("--memory-pressure-threshold", "0"))["pressure_cleanups"], 0)

    def kept(self, name, *arguments):
        """The most of several short runs: a call that a busy machine makes long keeps nothing."""
        return max(self.counted("a", "b", "-m", LABELS, "-t", "1", *arguments, verb="similarity")[name] for _ in range(8))

    def test_max_pool_size(self):
        self.assertGreater(self.kept("pool_blocks"), 1)
        self.assertEqual(self.kept("pool_blocks", "--max-pool-size", "1"), 1)
        self.assertEqual(self.kept("pool_blocks", "--max-pool-size", "0"), 0)

    def test_max_pool_memory(self):
        self.assertGreater(self.kept("pool_bytes"), 4096)
        self.assertLessEqual(self.kept("pool_bytes", "--max-pool-memory", "4k"), 4096)

    def test_idle_sessions(self):
        self.assertEqual(self.kept("sessions_idle"), 1)
        self.assertEqual(self.kept("sessions_idle", "--idle-sessions", "0"), 0)

    def test_idle_timeout(self):
        """Two sessions stay idle after work that is long enough for two threads, and short enough that the sessions are worth
        keeping: how many words that is depends on the machine. The next text uses one of them, and the other then ends."""

        def counts(words, *arguments):
            found = self.slowly((["a " * words] * 6, 0.1), (["b"], 0.05),
                                arguments=("-t", "2", "--batch-tokens", "1", "--idle-sessions", "2", *arguments))
            return found["sessions_made"], found["sessions_evicted"], found["sessions_idle"]

        words = next((words for words in (16, 8, 4, 2) * 5 if counts(words) == (2, 0, 2)), None)
        self.assertIsNotNone(words)
        self.assertIn((2, 1, 1), [counts(words, "--idle-timeout", "1") for _ in range(5)])

    def test_batch_tokens(self):
        self.assertGreater(self.counted("--batch-tokens", "32")["batches"], 2 * self.counted()["batches"])

    def test_min_batch_size(self):
        self.assertEqual(self.counted("--target-latency", "0.001", "--min-batch-size", "64")["windows"], 1)
        self.assertGreater(self.counted("--target-latency", "0.001")["windows"], 10)

    def test_max_batch_size(self):
        self.assertEqual(self.counted("--max-batch-size", "8")["windows"], 8)
        self.assertEqual(self.counted("--batch-most", "16")["windows"], 4)
        self.bad(2, "--max-batch-size", "8", "--batch-least", "9", stdin=b"", says="--min-batch-size 9 is above --max-batch-size 8")

    def test_target_latency(self):
        self.assertGreater(self.counted("--target-latency", "0.001")["windows"], self.counted()["windows"])

    def test_prefer(self):
        self.assertEqual(self.counted("--prefer", "latency")["windows"], 4)  # of 16 texts
        self.assertEqual(self.counted("--prefer", "throughput")["windows"], 1)

    def test_pooling(self):
        rows = [self.good("--pooling", how, stdin=b"a cat\n") for how in ("mean", "cls", "max", "last")]
        self.assertEqual(len(set(rows)), 4)

    def test_normalize(self):
        lengths = [np.linalg.norm(self.rows(flag, stdin=b"a cat\n")) for flag in ("--normalize", "--no-normalize")]
        self.assertAlmostEqual(lengths[0], 1, places=5)
        self.assertNotAlmostEqual(lengths[1], 1, places=1)
        self.assertEqual(self.good("--no-normalize", "--normalize", stdin=b"a\n"), self.good("--normalize", stdin=b"a\n"))

    def test_dim(self):
        self.assertEqual(len(self.rows("--dim", "7", stdin=b"a cat\n")[0]), 7)

    def test_max_length(self):
        self.assertEqual(self.counted("--max-length", "3")["tokens"], 64 * 3)
        self.bad(1, "--max-length", "1", stdin=b"a\n", says="the tokenizer alone adds 2")

    def test_max_length_of_classify(self):
        shown = self.run_pith("-m", LABELS, "--max-length", "3", "--stats", stdin=b"a b c d\n", verb="classify").stderr
        self.assertEqual(json.loads(shown)["statistics"]["tokens"], 3)

    def test_max_length_of_rerank(self):
        self.bad(1, "-m", CROSS, "--max-length", "2", "--query", "a", stdin=b"b\n", verb="rerank", says="the tokenizer alone adds 3")
        shown = self.run_pith("-m", CROSS, "--max-length", "6", "--query", "a b c d", "--stats", stdin=b"a b c d\n", verb="rerank").stderr
        self.assertEqual(json.loads(shown)["statistics"]["tokens"], 6)

    def test_max_length_of_bench(self):
        found = json.loads(self.good("--json", "--rounds", "1", "--texts", "lines.txt", "-t", "1", "--max-length", "3", verb="bench"))
        self.assertEqual(found["results"][0]["tokens"], 64 * 3)

    def test_profile_of_bench(self):
        self.good("--json", "--rounds", "1", "--texts", "lines.txt", "-t", "1", "--profile", "t.json", verb="bench")
        self.assertIn("traceEvents", json.loads((self.dir / "t.json").read_text()))

    def test_prompt_name(self):
        self.bad(1, "--prompt-name", "query", stdin=b"a\n", says="query")

    def test_model(self):
        self.bad(1, "-m", "no-such-model", stdin=b"a\n", says="no-such-model")

    def test_model_of_tokenize(self):
        self.bad(1, "-m", "no-such-model", stdin=b"a\n", says="no-such-model", verb="tokenize")
        self.bad(1, "-m", "no-such-model", stdin=b"[1]\n", says="no-such-model", verb="detokenize")

    def test_model_of_info(self):
        self.bad(1, "--stats", "-m", "no-such-model", says="no-such-model", verb="info")

    def test_invalid(self):
        self.bad(1, "--invalid", "error", stdin=b"\xff\n", says="byte 1")
        self.good("--invalid", "replace", stdin=b"\xff\n")

    def test_profile(self):
        self.good("--profile", "t.json", stdin=b"a\n")
        self.assertIn("traceEvents", json.loads((self.dir / "t.json").read_text()))

    def test_stats(self):
        shown = self.run_pith("--stats", stdin=b"a\nb\n")
        numbers = json.loads(shown.stderr)
        self.assertEqual((numbers["texts"], numbers["statistics"]["texts"]), (2, 2))
        text = self.run_pith("--stats=text", stdin=b"a\nb\n").stderr.decode()
        header = (SOURCE / "include/pith/statistics.h").read_text()
        counters = set(re.findall(r"uint64_t (\w+);", header))
        self.assertEqual(counters - set(numbers["statistics"]), set())
        for name in counters:
            self.assertIn(name.removesuffix("_ns"), text)
        self.assertEqual(self.run_pith("--stats=none", stdin=b"a\n").stderr, b"")
        self.bad(2, "--stats=xml", stdin=b"", says="--stats is one of none|json|text, not 'xml'")

    def test_stats_file(self):
        self.good("--stats-file", "s.json", stdin=b"a\n")
        self.assertEqual(json.loads((self.dir / "s.json").read_text())["texts"], 1)
        self.bad(1, "--stats-file", "none/s", stdin=b"a\n", says="none/s")

    def test_stats_of_info(self):
        found = json.loads(self.good("--stats", "--json", verb="info"))
        self.assertEqual(found["statistics"]["texts"], 2)
        self.assertNotIn("statistics", self.info())

    def test_config(self):
        self.write("other.json", '{"max_batch_size": 8}')
        self.assertEqual(self.counted("--config", "other.json")["windows"], 8)

    def test_preset(self):
        counted = self.counted("--preset", "memory")
        self.assertEqual(counted["windows"], 8)


class OfOneCommand(Options):
    """Options of single commands that no other test of these would miss."""

    def bench(self, *arguments):
        return json.loads(self.good("--json", "--rounds", "1", *arguments, verb="bench"))["results"]

    def test_texts_of_bench(self):
        self.bad(1, "--rounds", "1", "--token-count", "1", "-t", "1", "--texts", "missing.txt", verb="bench", says="missing.txt")

    def test_tokens_of_bench(self):
        few, more = (self.bench("--workload", "mixed", "-t", "1", "--token-count", n)[0]["tokens"] for n in ("100", "1000"))
        self.assertLess(few, 200)
        self.assertGreater(more, 900)

    def test_threads_of_bench(self):
        found = self.bench("--texts", "lines.txt", "-t", "3", "-t", "1")
        self.assertEqual([result["threads"] for result in found], [3, 1])

    def test_chunks_of_bench(self):
        found = self.bench("--workload", "short", "--text-count", "70", "--chunk", "16", "--chunk", "64", "-t", "1")
        self.assertEqual([(result["texts"], result["chunk"]) for result in found], [(70, 16), (70, 64)])
        self.bad(2, "--chunk", "0", verb="bench", says="--chunk must be a number from 1")

    def test_model_of_inspect(self):
        self.bad(1, "-m", "no-such-model", verb="inspect", says="no-such-model")
        self.bad(2, "-m", "a", "b", verb="inspect", says="not both")

    def test_calibrate(self):
        self.bad(1, "--precision", "int8", "--calibrate", "missing.txt", "-o", "m.pith", verb="compile", says="missing.txt")

    def test_quiet(self):
        self.assertNotEqual(self.run_pith(BERT, "-o", "m.pith", verb="compile").stderr, b"")
        quiet = self.run_pith(BERT, "-o", "m.pith", "--quiet", verb="compile")
        self.assertEqual((quiet.stdout, quiet.stderr, quiet.returncode), (b"", b"", 0))

    def test_progress(self):
        """It is shown on a terminal."""
        ours, theirs = os.openpty()
        subprocess.run([PITH, "embed", "--progress"], input=b"a\nb\n", stdout=subprocess.DEVNULL, stderr=theirs, env=self.settings)
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 1000):
                shown += part
        except OSError:  # so a terminal ends
            pass
        os.close(ours)
        self.assertIn(b"2 texts", shown)

    def test_runs_and_threads_of_inspect(self):
        found = json.loads(self.good("--json", "--time", "--runs", "3", "--threads", "2", verb="inspect"))
        self.assertEqual((found["runs"], found["threads"]), (3, 2))

    def test_instruction(self):
        model = DATA / "tasks/judge-qwen3"
        scores = [self.good("-m", model, "--query", "a", *more, stdin=b"b c\n", verb="rerank") for more in ((), ("--instruction", "x y z"))]
        self.assertNotEqual(*scores)

    def test_cut(self):
        first, second = (self.good("--pair", "--max-length", "9", "--cut", which, stdin=b"a b c d\te f g h\n", verb="tokenize")
                         for which in ("first", "second"))
        self.assertNotEqual(first, second)

    def test_compiled(self):
        """A compiled model takes no other value for an input that has a default."""
        from onnx import TensorProto, helper, numpy_helper, save
        one = numpy_helper.from_array(np.ones(2, np.float32), "w")
        graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g",
                                  [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "w")],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])], [one])
        (self.dir / "test/test_data_set_0").mkdir(parents=True)
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), self.dir / "test/model.onnx")
        for name, port, value in (("input_0", "x", 2), ("input_1", "w", 3), ("output_0", "y", 5)):
            tensor = numpy_helper.from_array(np.full(2, value, np.float32), port)
            (self.dir / f"test/test_data_set_0/{name}.pb").write_bytes(tensor.SerializeToString())
        self.assertIn(b"1 passed", self.good("test", verb="verify"))
        self.assertEqual(self.run_pith("--compiled", "test", verb="verify").returncode, 1)

    def test_verbose(self):
        told = [self.good(*flags, BERT.parent, verb="verify") for flags in ((), ("--verbose",))]
        self.assertNotIn(b"passed bert", told[0])
        self.assertIn(b"passed bert", told[1])

    def picky(self):
        """A model that takes only one in about ten made-up inputs, and names the number it does not like."""
        from onnx import TensorProto, helper, numpy_helper, save
        node = helper.make_node
        nodes = [node("ReduceMax", ["x"], ["m"], keepdims=0), node("Mul", ["m", "k"], ["mk"]), node("Cast", ["mk"], ["i"], to=TensorProto.INT64),
                 node("Gather", ["table", "i"], ["t"]), node("Mul", ["t", "x"], ["y"])]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                                  [numpy_helper.from_array(np.ones(3, np.float32), "table"), numpy_helper.from_array(np.float32(30), "k")])
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), self.dir / "picky.onnx")

    def test_runs_of_verify(self):
        self.picky()
        self.bad(1, "--fusions", "--runs", "1", "picky.onnx", verb="verify", says="is out of range")
        self.good("--fusions", "--runs", "100", "picky.onnx", verb="verify")

    def test_seed(self):
        self.picky()
        told = {self.bad(1, "--fusions", "--runs", "1", "--seed", seed, "picky.onnx", verb="verify").stderr for seed in (0, 1, 2)}
        self.assertEqual(len(told), 3)

    def test_completion(self):
        printed = subprocess.run([PITH, "--completion", "bash"], capture_output=True, check=True).stdout
        self.assertIn(b"complete -F _pith pith", printed)

    def test_timeout(self):
        """A hub that takes the connection and says nothing is given up."""
        import socket
        with socket.create_server(("127.0.0.1", 0)) as hub:
            began = time.monotonic()
            self.bad(1, "org/model", "--endpoint", f"http://127.0.0.1:{hub.getsockname()[1]}", "--timeout", "1", "--attempts", "1",
                     verb="pull", env={"PITH_CACHE": str(self.dir / "cache"), "HF_HOME": str(self.dir / "hf"), "no_proxy": "127.0.0.1"})
            self.assertLess(time.monotonic() - began, 30)


class Tables(Options):
    """Verbs of databases, on a shop of 40 customers and 400 orders."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.shop = Path(folder.name)
        draw = random.Random(5)
        days = [f"2024-{1 + i // 34:02}-{1 + i // 2 % 17 + i % 2:02}T10:00:00" for i in range(400)]
        (cls.shop / "customers.csv").write_text("customer_id,note\n" + "".join(f"{i},of kind {i % 7}\n" for i in range(40)))
        (cls.shop / "orders.csv").write_text("order_id,customer_id,ordered_at,price,returned,kind\n" + "".join(
            f"{i},{draw.randrange(40)},{days[i]},{draw.random():.3f},{'true' if draw.random() < 0.4 else 'false'},{'abc'[i * i % 7 % 3]}\n"
            for i in range(400)))
        split = {"kind": "time", "train_until": days[200], "validation_until": days[300]}
        cls.schema = {"name": "shop", "tables": {
            "customers": {"file": "customers.csv", "primary_key": "customer_id", "columns": {
                "customer_id": {"stype": "identifier"}, "note": {"stype": "text"}}},
            "orders": {"file": "orders.csv", "primary_key": "order_id", "temporal_column": "ordered_at", "columns": {
                "order_id": {"stype": "identifier"}, "customer_id": {"stype": "identifier", "foreign_key": "customers.customer_id"},
                "ordered_at": {"stype": "timestamp"}, "price": {"stype": "numerical"}, "returned": {"stype": "boolean"},
                "kind": {"stype": "categorical"}}}},
            "tasks": {name: {"anchor_table": "orders", "target_column": column, "observation_time_column": "ordered_at", "split": split}
                      for name, column in (("returned", "returned"), ("price", "price"), ("kind", "kind"), ("place", "price"))}}
        cls.schema["tasks"]["place"]["rank"] = True
        (cls.shop / "schema.json").write_text(json.dumps(cls.schema))
        subprocess.run([PITH, "preprocess", cls.shop, "-o", cls.shop / "shop.rdb"], check=True, capture_output=True)

    def test_inspect(self):
        """Figures of columns, keys without a row, columns of one value; the diagram; what does not go together."""
        self.write("people.csv", "id,boss,age,born,kind,empty,same", "1,,30,2000-01-02,a,,x", "2,1,30,2001-01-01,b,,x", "3,9,41.5,,b,,x")
        kinds = {"id": "identifier", "boss": "identifier", "age": "numerical", "born": "timestamp", "kind": "categorical",
                 "empty": "numerical", "same": "categorical"}
        columns = {name: {"stype": stype} for name, stype in kinds.items()}
        columns["boss"]["foreign_key"] = "a<b.id"
        self.write("schema.json", json.dumps({"name": "staff & more", "tables": {"a<b": {
            "file": "people.csv", "primary_key": "id", "columns": columns}}}))
        self.good(self.dir, "-o", "staff.rdb", verb="preprocess")
        said = self.good("staff.rdb", verb="inspect").decode()
        for words in ("a<b: 3 rows", "30 to 41.5", "2000-01-02T00:00:00Z to 2001-01-01T00:00:00Z", "a<b.boss -> a<b: 1 nulls, 1 dangling"):
            self.assertIn(words, said)
        told = json.loads(self.good("staff.rdb", "--json", "--svg", "staff.svg", verb="inspect"))
        (table,), (link,) = told["tables"], told["links"]
        figures = {column["name"]: (column["nulls"], column["distinct"], column.get("least"), column.get("greatest"))
                   for column in table["columns"]}
        self.assertEqual(figures, {"age": (0, 2, 30, 41.5), "born": (1, 2, 946771200, 978307200), "kind": (0, 2, None, None),
                                   "empty": (3, 0, None, None), "same": (0, 1, None, None)})
        self.assertEqual((link["nulls"], link["dangling"]), (1, 1))
        self.assertEqual(sorted(told["warnings"]), ["a<b: column 'boss': 1 of 3 keys name no row of 'a<b'",
                                                    "a<b: column 'empty' holds nulls only", "a<b: column 'same' is constant"])
        drawn = xml.etree.ElementTree.parse(self.dir / "staff.svg").getroot()
        texts = [node.text for node in drawn.iter("{http://www.w3.org/2000/svg}text")]
        for text in ("staff & more", "a<b", "3 rows", "boss", "1 dangling", "age", "numerical"):
            self.assertIn(text, texts)
        style = drawn.find("{http://www.w3.org/2000/svg}style").text
        self.assertIn("prefers-color-scheme:dark", style)
        self.assertNotIn("script", (self.dir / "staff.svg").read_text())
        self.bad(2, BERT, "--svg", "x.svg", verb="inspect", says="--dot draws a model")
        self.bad(2, "staff.rdb", "--ops", verb="inspect", says="where only --json and --svg apply")
        (self.dir / "cut.rdb").write_bytes((self.dir / "staff.rdb").read_bytes()[:-9])
        self.bad(1, "cut.rdb", "--svg", "cut.svg", verb="inspect", says="cut.rdb")
        self.assertFalse((self.dir / "cut.svg").exists())

    def test_diagram(self):
        """Every cycle is drawn, links over layers too, each arrow with its key; arrows end at the table that the key names."""
        links = {"a": "b", "b": "c", "c": "a", "d": "a", "e": "a"}
        tables = {}
        for name, parents in {**{k: [v] for k, v in links.items()}, "f": ["e", "a", "f"], "lone": []}.items():
            self.write(f"{name}.csv", ",".join(["id", *(f"to_{p}" for p in parents)]), ",".join(["1"] * (1 + len(parents))))
            tables[name] = {"file": f"{name}.csv", "primary_key": "id", "columns": {"id": {"stype": "identifier"}, **{
                f"to_{p}": {"stype": "identifier", "foreign_key": f"{p}.id"} for p in parents}}}
        self.write("schema.json", json.dumps({"name": "round", "tables": tables}))
        self.good(self.dir, "-o", "round.rdb", verb="preprocess")
        self.good("round.rdb", "--svg", "round.svg", verb="inspect")
        drawn = (self.dir / "round.svg").read_text()
        self.assertEqual(sorted(re.findall(r"<title>(\S+) names a row of (\S+)</title>", drawn)), sorted(
            [(f"{k}.to_{v}", v) for k, v in links.items()] + [("f.to_e", "e"), ("f.to_a", "a"), ("f.to_f", "f")]))
        boxes = {name: (float(x), float(y), float(h)) for x, y, h, name in re.findall(
            r'class="box" x="(\S+)" y="(\S+)" width="250" height="(\S+)".*\n.*\n<text[^>]*>(\w+)<', drawn)}
        self.assertEqual(len(boxes), 7)
        for parent, x, y in re.findall(r'row of (\w+)</title></path>\n<path class="tip" d="M(\S+),(\S+) ', drawn):
            self.assertIn(float(x) - boxes[parent][0], (0, 250))
            self.assertEqual(float(y) - boxes[parent][1], 13)
        placed = sorted(boxes.values())
        for one, (x, y, height) in enumerate(placed):  # no box covers another
            self.assertTrue(all(x2 != x or y2 >= y + height for x2, y2, _ in placed[one + 1:]))

    def trained(self, place, *arguments, config='{"batch": 4, "cells": 60, "width": 8}', task="returned"):
        self.write("model.json", config)
        compare = () if "--predictor" in arguments or "--compare" in arguments else ("--no-compare",)
        result = self.run_pith(self.shop / "shop.rdb", "--task", task, "-o", place, "--hyperparameters", "model.json", *arguments, *compare, verb="train")
        self.assertEqual(result.returncode, 0, result.stderr)
        log = [json.loads(line) for line in (self.dir / place / "log.jsonl").read_text().splitlines()]
        return log, (self.dir / place / "model.bin").read_bytes()

    def test_schema(self):
        draft = json.loads(self.good(self.shop, "--draft", verb="preprocess"))
        self.assertEqual(draft["tables"]["orders"]["columns"]["price"]["stype"], "numerical")
        self.schema["tables"]["orders"]["columns"]["price"]["stype"] = "nothing"
        self.write("wrong.json", json.dumps(self.schema))
        self.schema["tables"]["orders"]["columns"]["price"]["stype"] = "numerical"
        self.bad(1, self.shop, "--schema", "wrong.json", "-o", "x.rdb", verb="preprocess", says="nothing")
        self.assertFalse((self.dir / "x.rdb").exists())

    def test_embedder(self):
        result = self.run_pith(self.shop, "--embedder", DATA / "modules/dense", "-o", "x.rdb", verb="preprocess")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotEqual((self.dir / "x.rdb").read_bytes(), (self.shop / "shop.rdb").read_bytes())
        self.run_pith(self.shop, "--embedder", "hash", "-o", "x.rdb", verb="preprocess")
        self.assertEqual((self.dir / "x.rdb").read_bytes(), (self.shop / "shop.rdb").read_bytes())

    def test_python(self):
        """Which Python reads Parquet, and what is said where it cannot. That it reads them is tested by relational/parquet_sources.py."""
        (self.dir / "parquet").mkdir()
        (self.dir / "parquet/a.parquet").write_bytes(b"PAR1")
        self.bad(1, "parquet", "--python", "/nowhere/python", "-o", "x.rdb", verb="preprocess", says="/nowhere/python")
        self.write("python", "#!/bin/sh", "exec '" + sys.executable + "' -S -E \"$@\"")
        (self.dir / "python").chmod(0o755)
        self.bad(1, "parquet", "--python", self.dir / "python", "-o", "x.rdb", verb="preprocess", says="pip install pyarrow")
        self.assertFalse((self.dir / "x.rdb").exists())

    def test_training(self):
        log, model = self.trained("run", "--steps", "3", "--save-every", "1")
        self.assertEqual([line["step"] for line in log], [1, 2, 3])
        self.assertEqual(self.trained("again", "--steps", "3", "--seed", "0")[1], model)
        self.assertNotEqual(self.trained("seed", "--steps", "3", "--seed", "1")[1], model)
        self.assertNotEqual(self.trained("wide", "--steps", "3", config='{"batch": 4, "cells": 60, "width": 16}')[1], model)
        self.assertNotEqual(self.trained("ages", "--steps", "3", config='{"batch": 4, "cells": 60, "width": 8, "ages_alone": true}')[1], model)
        self.assertNotEqual(self.trained("price", "--steps", "3", task="price")[1], model)
        self.bad(1, self.shop / "shop.rdb", "--task", "sold", "-o", "x", verb="train", says="no task")

    def test_from(self):
        _, base = self.trained("base", "--steps", "3")
        log, model = self.trained("zero", "--from", "base", "--steps", "0", "--seed", "9", config="{}")
        self.assertEqual([line["step"] for line in log], [0])
        self.assertIn(base[-400:-8], model)  # the parameters, before the checksum
        self.assertNotIn(base[-400:-8], self.trained("more", "--from", self.dir / "base/model.bin", "--steps", "1")[1])
        for shape in ('{"dim": 64}', '{"heads": 1}'):
            self.write("wide.json", shape)
            self.bad(1, self.shop / "shop.rdb", "--task", "returned", "--from", "base", "--hyperparameters", "wide.json", "-o", "x", verb="train",
                     says="must be the same")
            self.assertFalse((self.dir / "x").exists())
        self.bad(1, self.shop / "shop.rdb", "--task", "returned", "--from", "keys", "-o", "x", verb="train", says="No such file")

    def test_several(self):
        subprocess.run([PITH, "preprocess", self.shop, "-o", self.dir / "twin.rdb"], check=True)
        both = [self.shop / "shop.rdb", self.dir / "twin.rdb"]
        self.write("model.json", '{"batch": 8, "cells": 60, "width": 8, "steps": 60}')
        for place, threads in (("one", "1"), ("two", "2")):
            result = self.run_pith(*both, "--task", "returned", "--hyperparameters", "model.json", "--threads", threads, "-o", place, "--save-every", "7",
                                   "--no-compare", verb="train")
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((self.dir / "one/model.bin").read_bytes(), (self.dir / "two/model.bin").read_bytes())
        self.assertEqual(json.loads(self.good("one", "--json", verb="eval"))["rows"], 101)
        self.bad(1, *both, "--task", "returned,price", "-o", "x", verb="train", says="different kinds")
        self.bad(2, *both, "--task", "a,b,c", "-o", "x", verb="train", says="3 tasks")
        self.bad(1, *both, "--task", "returned", "-o", "one", verb="train", says="another database")

    def test_intervals(self):
        log, _ = self.trained("run", "--steps", "6", "--save-every", "2", "--evaluate-every", "4")
        self.assertEqual([(line["step"], "validation" in line) for line in log], [(2, False), (4, True), (6, True)])

    def test_early_stopping(self):
        """The model of the least loss is kept and asked; training ends so many steps after it, also when it is interrupted."""
        words = ("--steps", "400", "--save-every", "2", "--evaluate-every", "4", "--early-stopping", "8")
        log, model = self.trained("run", *words)
        losses = {line["step"]: line["validation"]["logloss"] for line in log if "validation" in line}
        best = min(losses, key=losses.get)
        self.assertEqual(log[-1]["best_step"], best)
        self.assertEqual(log[-1]["step"], best + 8)  # the labels are noise
        asked = json.loads(self.good("run", "--split", "validation", "--json", verb="eval"))["logloss"]
        self.assertAlmostEqual(asked, losses[best], 5)
        self.assertNotAlmostEqual(asked, losses[best + 8], 5)
        self.assertEqual(self.trained("run", *words), (log, model))
        self.bad(1, self.shop / "shop.rdb", "--task", "returned", "-o", "run", "--hyperparameters", "model.json", "--steps", "400", verb="train",
                 says="another database")
        (self.dir / "cut").mkdir()
        for name in ("run.json", "best.bin", "log.jsonl"):
            shutil.copy(self.dir / "run" / name, self.dir / "cut" / name)
        shutil.copy(self.dir / "run/best.bin", self.dir / "cut/model.bin")
        again, same = self.trained("cut", *words)
        self.assertEqual([line["step"] for line in again[len(log):]], [best + 2, best + 4, best + 6, best + 8])
        self.assertEqual(same, model)
        self.assertEqual((self.dir / "cut/best.bin").read_bytes(), (self.dir / "run/best.bin").read_bytes())

    def test_model_of_train(self):
        """The losses of simpler predictors are noted, the one that does best answers if that is wanted, and every verb says if one would."""
        self.trained("run", "--steps", "2", "--compare")
        about = json.loads((self.dir / "run/run.json").read_text())
        losses = about["validation"]
        baselines = json.loads(self.run_pith("run", "--baseline", "--split", "validation", "--json", verb="eval").stdout)
        own = {"transformer": baselines["logloss"], **{name: b["logloss"] for name, b in baselines["baselines"].items()}}
        self.assertEqual(losses["loss"], "logloss")
        for name in ("transformer", "constant", "entity mean", "trees: row, parents, children"):
            self.assertAlmostEqual(losses[name], own[name], 6)
        best = min((name for name in losses if name != "loss"), key=losses.get)
        self.assertNotEqual(best, "transformer")  # after two steps
        for words in (("eval", "run"), ("predict", "run", "--rows", "-"), ("train", self.shop / "shop.rdb", "--task", "returned", "-o", "run",
                                                                         "--hyperparameters", "model.json", "--steps", "2")):
            said = self.run_pith(*words[1:], verb=words[0], stdin=b"7\n").stderr.decode()
            self.assertIn(f"'{best}' does better than the model", said)
            self.assertEqual(said.count("\n"), 1)
        result = self.run_pith(self.shop / "shop.rdb", "--task", "returned", "-o", "run", "--hyperparameters", "model.json", "--steps", "2",
                               "--predictor", "auto", verb="train")
        self.assertIn(f"'{best}' answers", result.stderr.decode())
        self.assertEqual(json.loads((self.dir / "run/run.json").read_text())["answers"], best)
        told = json.loads(self.good("run", "--split", "validation", "--json", verb="eval"))
        self.assertEqual(told["answers"], best)
        self.assertAlmostEqual(told["logloss"], losses[best], 6)
        self.assertIn(f"'{best}' answers", self.good("run", verb="eval").decode())
        self.bad(1, "run", "--importance", verb="eval", says=("--importance", best))
        self.bad(1, "run", "--rows", "-", "--inputs", "in", verb="predict", stdin=b"7\n", says=("--inputs", best))
        self.bad(1, "run", "-o", "x.onnx", verb="export", says=("transformer", best))
        (self.dir / "run/baseline.bin").write_bytes((self.dir / "run/baseline.bin").read_bytes()[:-9])
        self.bad(1, "run", verb="eval", says="baseline.bin")
        self.bad(2, self.shop / "shop.rdb", "--task", "returned", "-o", "x", "--predictor", "auto", "--no-compare", verb="train", says="--no-compare")

    def test_database(self):
        """Rows of another database, or of a source with the schema of the run."""
        self.trained("run", "--steps", "2")
        self.write("keys.txt", "7", "399", "400")
        (first, *old), new = (self.bad(1, "run", "--rows", "keys.txt", verb="predict", says="'400'").stdout.decode().splitlines(), None)
        self.assertEqual(old[1], "400\terror: table 'orders' has no row '400'")
        later = self.dir / "later"
        shutil.copytree(self.shop, later)
        with open(later / "orders.csv", "a") as f:
            f.write("400,39,2025-01-01T00:00:00,0.5,,d\n")
        self.good(later, "-o", "later.rdb", verb="preprocess")
        new = self.good("run", "--database", "later.rdb", "--rows", "keys.txt", verb="predict").decode().splitlines()
        self.assertEqual(new[:2], [first, old[0]])
        (later / "schema.json").unlink()
        self.assertEqual(self.good("run", "--database", later, "--rows", "keys.txt", verb="predict").decode().splitlines(), new)
        self.write("schema.json", json.dumps(self.schema))
        again = self.good("run", "--database", later, "--schema", "schema.json", "--embedder", "hash", "--rows", "keys.txt", verb="predict")
        self.assertEqual(again.decode().splitlines(), new)
        self.bad(1, "run", "--database", later, "--embedder", DATA / "modules/dense", "--rows", "keys.txt", verb="predict", says="other vectors")
        self.bad(2, "run", "--embedder", "hash", "--rows", "keys.txt", verb="predict", says="--database")
        self.bad(1, "run", "--database", "nowhere", "--rows", "keys.txt", verb="predict", says="nowhere")

    def test_answers(self):
        self.trained("run", "--steps", "2")
        rows = {part: json.loads(self.good("run", "--split", part, "--json", verb="eval"))["rows"] for part in ("train", "validation", "test")}
        self.assertEqual(sum(rows.values()), 400)
        self.assertEqual(json.loads(self.good("run", "--json", verb="eval"))["rows"], rows["test"])
        self.write("keys.txt", "7", "399")
        said = self.good("run", "--rows", "keys.txt", verb="predict").decode().splitlines()
        self.assertEqual([line.split("\t")[0] for line in said], ["7", "399"])

    def picture(self, path):
        """Title, points of the first lines in units of the axes, texts of all titles inside, names with their numbers."""
        tree = xml.etree.ElementTree.fromstring((self.dir / path).read_text())
        name = "{http://www.w3.org/2000/svg}"
        self.assertFalse(tree.findall(f".//{name}script"))
        self.assertIn("prefers-color-scheme:dark", tree.find(f"{name}style").text)
        lines = {line.get("class"): [tuple(map(float, xy.split(","))) for xy in line.get("points").split()] for line in tree.findall(f"{name}polyline")}
        words = [text.text for text in tree.findall(f"{name}text")]
        return words[0], lines, [one.text for one in tree.findall(f".//{name}circle/{name}title")], words[1:]

    def test_plots(self):
        log, _ = self.trained("run", "--steps", "4", "--save-every", "1", "--evaluate-every", "2")
        _, _, says, _ = self.picture("run/loss.svg")
        wanted = [f"step {line['step']}: {line['loss']:.6g}" for line in log]
        wanted += [f"step {line['step']}: {line['validation']['logloss']:.6g}" for line in log if "validation" in line]
        self.assertEqual(says, wanted)
        (self.dir / "run/loss.svg").unlink()
        told = json.loads(self.good("run", "--json", "--importance", "--plots", verb="eval"))
        self.assertEqual(self.picture("run/loss.svg")[2], wanted)
        title, lines, _, _ = self.picture("run/roc.svg")
        self.assertEqual(title, f"ROC, area {told['auroc']:.4f}")
        # The corners of the square are those of the line of chance.
        (left, bottom), (right, top) = lines["reference"]
        curve = [((x - left) / (right - left), (y - bottom) / (top - bottom)) for x, y in lines["first"]]
        self.assertEqual((curve[0], curve[-1]), ((0, 0), (1, 1)))
        area = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in zip(curve, curve[1:]))
        self.assertAlmostEqual(area, told["auroc"], delta=2e-3)
        orders = [line.split(",") for line in (self.shop / "orders.csv").read_text().splitlines()[1:]]
        self.write("keys.txt", *[row[0] for row in orders[-told["rows"]:]])
        said = [float(line.split("\t")[1]) for line in self.good("run", "--rows", "keys.txt", verb="predict").decode().splitlines()]
        both = sorted(zip(said, [row[4] == "true" for row in orders[-told["rows"]:]]))
        _, lines, says, _ = self.picture("run/calibration.svg")
        self.assertEqual((len(says), len(lines["first"])), (10, 10))
        found = 0
        for i, one in enumerate(says):
            part = both[i * len(both) // 10:(i + 1) * len(both) // 10]
            answer, truth, rows = map(float, re.fullmatch(r"said (.*), true (.*), (.*) rows", one).groups())
            self.assertEqual(rows, len(part))
            self.assertAlmostEqual(answer, sum(p for p, _ in part) / len(part), delta=1e-5)
            # Answers that are printed alike may lie in either part.
            self.assertAlmostEqual(truth, sum(y for _, y in part) / len(part), delta=1 / len(part) + 1e-5)
            found += truth * rows
        self.assertAlmostEqual(found, sum(y for _, y in both), delta=1e-3)
        words = self.picture("run/importance.svg")[3]
        for i, one in enumerate(told["importance"]):
            name = f"{one['table']}.{one['column']}" if "column" in one else f"all of {one['table']}"
            self.assertEqual(words[2 * i:2 * i + 2], [name, f"{one['loss_rise']:.4f}"])
        # Numbers have no ROC.
        self.trained("price", "--steps", "2", task="price")
        self.good("price", "--plots", verb="eval")
        self.assertEqual(sorted(path.name for path in (self.dir / "price").glob("*.svg")), ["calibration.svg", "loss.svg"])

    def test_export(self):
        """The exported network in Pith and in ONNX Runtime says what pith predict says."""
        self.write("keys.txt", *map(str, range(300, 340)))
        full = '{"batch": 4, "cells": 60, "width": 8, "blocks": 3, "attend": ["column", "feature", "neighbour", "full"]}'
        for task, config in (("returned", full), ("price", '{"batch": 4, "cells": 60}'), ("kind", '{"batch": 4, "cells": 60}'),
                             ("place", '{"batch": 4, "cells": 60}')):
            self.trained(task, "--steps", "20", task=task, config=config)
            said = self.good(task, "--rows", "keys.txt", "--inputs", f"{task}-in", verb="predict").decode().splitlines()
            self.good(task, "-o", f"{task}.onnx", verb="export")
            given = {path.stem: np.load(path) for path in (self.dir / f"{task}-in").iterdir()}
            self.good(f"{task}.onnx", *[x for name in given for x in ("-i", f"{name}={task}-in/{name}.npy")], "-o", f"{task}-out", verb="run")
            session = onnxruntime.InferenceSession(self.dir / f"{task}.onnx", providers=["CPUExecutionProvider"])
            for answers in (np.load(self.dir / f"{task}-out/0_answers.npy"), session.run(None, given)[0]):
                self.assertEqual(len(answers), 40)
                wanted = np.array([float(line.split("\t")[-1]) for line in said])
                self.assertGreater(wanted.std(), 1e-3)
                np.testing.assert_allclose(answers.max(axis=1), wanted, rtol=1e-5, atol=1e-5)
        self.write("many.txt", *map(str, range(300)))
        self.bad(1, "returned", "--rows", "many.txt", "--inputs", "x", verb="predict", says="1 to 255 rows")

    def test_baselines(self):
        self.trained("run", "--steps", "2")
        plain, more = (json.loads(self.good("run", "--json", *flags, verb="eval")) for flags in ((), ("--baseline", "--importance")))
        self.assertEqual(set(more) - set(plain), {"baselines", "importance"})



class Export(Options):
    verb = "export"
    stdin = None

    def model(self, *arguments, name="x.onnx"):
        self.good(DATA / "modules/dense-plain", "-o", name, "-q", *arguments)
        return json.loads(self.good("--json", name, verb="inspect"))

    def test_file(self):
        usual = json.loads(self.good(DATA / "modules/dense-plain", "-o", "y.onnx", "--json"))
        self.assertEqual((usual["opset"], usual["dtype"]), (17, "f32"))
        made = json.loads(self.good(DATA / "modules/dense-plain", "-o", "z.onnx", "--json", "--opset", "20", "--dtype", "f16"))
        self.assertEqual((made["opset"], made["dtype"]), (20, "f16"))
        self.assertLess((self.dir / "z.onnx").stat().st_size, 0.8 * (self.dir / "y.onnx").stat().st_size)
        types = [{i["dtype"] for i in self.model(*flag, name=name)["inputs"]} for flag, name in (((), "a.onnx"), (("--int32-inputs",), "b.onnx"))]
        self.assertEqual(types, [{"int64"}, {"int32"}])

    def test_fuse(self):
        domains = []
        for flags in ((), ("--fuse", "com.microsoft")):
            self.good(DATA / "modules/dense-plain", "-o", "f.onnx", "-q", "-f", *flags)
            domains.append(b"com.microsoft" in (self.dir / "f.onnx").read_bytes())
        self.assertEqual(domains, [False, True])

    def test_external_and_force(self):
        self.model("--external")
        self.assertTrue((self.dir / "x.onnx.data").stat().st_size > 0)
        self.bad(1, DATA / "modules/dense-plain", "-o", "x.onnx", says="--force")
        self.good(DATA / "modules/dense-plain", "-o", "x.onnx", "-q", "-f")

    def test_pool(self):
        (self.dir / "inputs").mkdir()
        for name, values in (("input_ids", [[2, 5, 6, 7, 3]]), ("attention_mask", [[1] * 5]), ("token_type_ids", [[0] * 5])):
            np.save(self.dir / f"inputs/{name}.npy", np.array(values, np.int64))
        vectors = {}
        for name, flags in (("mean", ("--pooling", "mean")), ("cls", ("--pooling", "cls")), ("cut", ("--pooling", "mean", "--dim", "4")),
                            ("long", ("--pooling", "mean", "--no-normalize"))):
            inputs = self.model("--pool", *flags, name=f"{name}.onnx")["inputs"]
            self.good(f"{name}.onnx", "-o", name, *(word for i in inputs for word in ("-i", f"{i['name']}=inputs/{i['name']}.npy")), verb="run")
            (vectors[name],) = (np.load(path) for path in (self.dir / name).iterdir())
        self.assertFalse(np.allclose(vectors["mean"], vectors["cls"], atol=1e-3))
        self.assertEqual(vectors["cut"].shape[1], 4)
        np.testing.assert_allclose([np.linalg.norm(vectors[n]) for n in ("mean", "cls", "cut")], 1, atol=1e-5)
        self.assertNotAlmostEqual(float(np.linalg.norm(vectors["long"])), 1, places=3)

    def test_pooled_directory(self):
        """What --pool writes can be embedded with: a directory as it is, a file says what is missing."""
        for verb, near, more in (("export", 1e-5, ()), ("export", 1e-2, ("--dtype", "f16")), ("quantize", 0.1, ()), ("quantize", 0.1, ("--scheme", "q8"))):
            for model in ("dense-plain", "chain"):
                with self.subTest(verb=verb, model=model, more=more):
                    folder = f"{verb}-{model}-{len(more)}{more[-1] if more else ''}"
                    said = self.run_pith(DATA / "modules" / model, "--pool", "-o", folder, *more, verb=verb).stderr.decode()
                    self.assertEqual(said.splitlines()[-1], f"'pith embed -m {folder}' embeds texts with it")
                    self.assertFalse((self.dir / folder / "modules.json").exists())
                    outputs = json.loads(self.good(folder, "--json", verb="inspect"))["outputs"]
                    self.assertEqual([port["name"] for port in outputs], ["sentence_embedding"])
                    wanted, got = (self.rows("-m", m, stdin=b"a b c\nb\n", verb="embed") for m in (DATA / "modules" / model, folder))
                    np.testing.assert_allclose(got, wanted, atol=near * float(np.abs(wanted).max()))
        said = self.run_pith(DATA / "modules/dense-plain", "--pool", "-o", "alone.onnx").stderr.decode()
        self.assertIn("needs the model's tokenizer next to it: -o DIR/", said.splitlines()[-1])
        shutil.copy(DATA / "modules/dense-plain/tokenizer.json", self.dir)
        self.assertNotIn("beside", self.run_pith(DATA / "modules/dense-plain", "--pool", "-f", "-o", "alone.onnx").stderr.decode())
        self.assertEqual(len(self.rows("-m", "alone.onnx", stdin=b"a b c\n", verb="embed")), 1)
        self.bad(2, BERT, "-o", "y.onnx", "--dim", "3", verb="quantize", says="go with --pool")

    def test_messages(self):
        result = self.run_pith(DATA / "modules/dense-plain", "-o", "x.onnx", "--json")
        self.assertEqual(json.loads(result.stdout)["path"], "x.onnx")
        self.assertNotEqual(self.run_pith(DATA / "modules/dense-plain", "-o", "y.onnx").stderr, b"")
        self.assertEqual(self.run_pith(DATA / "modules/dense-plain", "-o", "z.onnx", "-q").stderr, b"")


class Quantize(Options):
    verb = "quantize"
    stdin = None

    def made(self, *arguments, model=BERT):
        """What was said, and the file."""
        said = json.loads(self.good(model, "-o", "x.onnx", "-f", "--json", *arguments))
        return said, (self.dir / "x.onnx").read_bytes()

    def differ(self, common, *flags, model=BERT):
        usual = self.made(*common, model=model)[1]
        for flag in flags:
            self.assertNotEqual(self.made(*common, *flag, model=model)[1], usual, flag)

    def test_schemes(self):
        self.assertEqual(self.made()[0]["scheme"], "int8")
        for scheme in ("q8", "q4"):
            self.assertEqual(self.made("--scheme", scheme)[0]["scheme"], scheme)

    def test_blocks(self):
        self.differ(("--scheme", "q4"), ("--block", "16"), ("--asymmetric",), ("--accuracy", "0"))
        self.differ(("--scheme", "q8"), ("--accuracy", "4"))
        for scheme, level in (("q4", "4"), ("q8", "0")):
            self.assertEqual(*(self.made("--scheme", scheme, *more)[1] for more in ((), ("--accuracy", level))))
        self.bad(2, BERT, "-o", "y.onnx", "--block", "16", says="--scheme q4 or q8")

    def test_int8(self):
        self.differ((), ("--no-per-row",), ("--reduce-range",))
        self.assertEqual(self.made("--per-row")[1], self.made()[1])
        self.bad(2, BERT, "-o", "y.onnx", "--scheme", "q4", "--no-per-row", says="--scheme int8")
        self.assertEqual([self.made(*flags)[0]["kept"] > 0 for flags in ((), ("--keep-f32", "pooler"))], [False, True])

    def test_tables(self):
        self.differ(("--scheme", "q4"), ("--table", "4"), ("--table", "f32"), ("--table-block", "16"))

    def test_texts(self):
        model = DATA / "modules/dense-plain"
        self.write("words.txt", "a b c", "c a", "b b a c", "a")
        self.differ(("--scheme", "q4"), ("--calibrate", "words.txt"), model=model)
        self.assertEqual(self.made("--eval", "words.txt", model=model)[0]["texts"], 4)

    def test_static(self):
        """Ranges by texts, in three ways, and by tensors; the file has QuantizeLinear, and Pith and ONNX Runtime agree on it."""
        model = DATA / "modules/dense-plain"
        self.write("words.txt", "a b c", "c a", "b b a c", "a", *("a b c b a c" for _ in range(30)))
        common = ("--scheme", "static", "--calibrate", "words.txt")
        said, made = self.made(*common, "--eval", "words.txt", model=model)
        self.assertEqual((said["scheme"], said["kept"]), ("static", 0))
        self.assertLess(said["mean_difference"], 0.02)
        self.assertIn(b"QuantizeLinear", made)
        self.differ(common, ("--range-method", "percentile", "--percentile", "98"), ("--range-method", "entropy"), ("--reduce-range",), model=model)
        self.assertNotEqual(self.made(*common, "--range-method", "percentile", "--percentile", "98", model=model)[1],
                            self.made(*common, "--range-method", "percentile", model=model)[1])
        self.bad(2, model, "-o", "y.onnx", "--scheme", "static", says="needs --calibrate")
        self.bad(2, model, "-o", "y.onnx", "--range-method", "entropy", says="go with --scheme static")
        sets, net = self.dir / "sets", BERT
        for i in range(3):
            (sets / str(i)).mkdir(parents=True)
            for name, array in (("input_ids", np.arange(3 + i, 11 + i)[None]), ("attention_mask", np.ones((1, 8))), ("token_type_ids", np.zeros((1, 8)))):
                np.save(sets / str(i) / f"{name}.npy", array.astype(np.int64))
        said, by_tensors = self.made("--scheme", "static", "--calibrate", sets, model=net)
        self.assertEqual((said["scheme"], said["kept"]), ("static", 0))
        np.save(sets / "2/input_ids.npy", np.full((1, 8), 9))
        self.assertNotEqual(self.made("--scheme", "static", "--calibrate", sets, model=net)[1], by_tensors)
        (sets / "1/attention_mask.npy").unlink()
        self.bad(1, net, "-o", "y.onnx", "--scheme", "static", "--calibrate", sets, says="no attention_mask.npy")
        self.bad(2, net, "-o", "y.onnx", "--calibrate", sets, says="--scheme static")

    def test_target(self):
        """The fewest weights that reach a target stay in f32."""
        model = DATA / "modules/dense-plain"
        self.write("words.txt", "a b c", "c a", "b b a c", "a", *("a b c b a c"[i:] for i in range(0, 8, 2)))
        common = ("--scheme", "q4", "--calibrate", "words.txt", "--eval", "words.txt")
        loose = self.made(*common, model=model)[0]
        aim = loose["mean_difference"] / 2
        said = self.made(*common, "--target", str(aim), model=model)[0]
        self.assertLessEqual(said["mean_difference"], aim)
        self.assertLess(said["tables"] + said["matmuls"], loose["tables"] + loose["matmuls"])
        self.assertGreater(said["matmuls"] + said["tables"], 0)
        self.assertEqual(self.made(*common, "--target", "1", model=model)[0], loose)
        self.bad(1, model, "-o", "y.onnx", *common, "--target", "1e-12", says="the target of 1e-12 cannot be reached")
        self.bad(2, model, "-o", "y.onnx", "--target", "0.1", says="--target needs --eval and --calibrate")

    def test_pairs(self):
        """Spearman's correlation of pairs, as NumPy gives it, from columns with and without names, and from tabs."""
        model, draw = DATA / "modules/dense-plain", np.random.default_rng(1)
        pairs = [(" ".join(draw.choice(list("abc"), 4)), " ".join(draw.choice(list("abc"), 3)), int(draw.integers(0, 6))) for _ in range(30)]
        self.write("p.csv", *(f'"{a}",{b},{s}' for a, b, s in pairs))
        self.write("p.tsv", "id\tscore\tsentence1\tsentence2", *(f"7\t{s}\t{a}\t{b}" for a, b, s in pairs))
        said = [self.made("--eval", name, model=model)[0] for name in ("p.csv", "p.tsv")]
        self.assertEqual(said[0], said[1])
        self.write("texts.txt", *(t for a, b, _ in pairs for t in (a, b)))
        rows = [json.loads(line) for line in self.good("texts.txt", "-m", model, verb="embed").splitlines()]
        cosine = [float(np.dot(a, b)) for a, b in zip(rows[::2], rows[1::2])]
        ranks = [(np.searchsorted(np.sort(v), v, "left") + np.searchsorted(np.sort(v), v, "right") + 1) / 2
                 for v in (np.round(cosine, 6), np.array([s for *_, s in pairs]))]
        self.assertAlmostEqual(said[0]["sts_before"], float(np.corrcoef(*ranks)[0, 1]), places=3)
        self.assertNotEqual(said[0]["sts"], said[0]["sts_before"])
        self.write("bad.csv", "a,b,c")
        self.bad(1, model, "-o", "y.onnx", "--eval", "bad.csv", says="bad.csv: line 1: 'c' is no score")
        self.write("bad.tsv", "a\tb")
        self.bad(1, model, "-o", "y.onnx", "--eval", "bad.tsv", says="line 1 has 2 columns")


class Optimize(Quantize):
    verb = "optimize"

    def ports(self, key):
        return {port["name"]: port for port in json.loads(self.good("--json", "x.onnx", verb="inspect"))[key]}

    def test_fusions(self):
        nodes = [self.made(*flags)[0]["nodes"] for flags in (("--level", "1"), (), ("--standard",))]
        self.assertGreater(nodes[0], nodes[1])
        self.assertGreater(nodes[2], nodes[1])
        self.differ((), ("--gpu",))
        self.assertEqual(self.made("--opset", "20")[0]["opset"], 20)

    def test_fuse(self):
        self.differ((), ("--fuse", "com.microsoft"))
        self.bad(2, BERT, "-o", "y.onnx", "--fuse", "com.microsoft", "--standard", says="exclude each other")

    def test_types(self):
        self.differ(("--dtype", "f16"), ("--keep-f32", "LayerNormalization"))
        for flags, dtype in (((), "float32"), (("--narrow-ports",), "float16")):
            self.made("--dtype", "f16", *flags)
            self.assertEqual({port["dtype"] for port in self.ports("outputs").values()}, {dtype})

    def test_parts(self):
        yunet = DATA / "yunet/yunet-s-640-other-sizes/model.onnx"
        self.made("--extract-output", "cls_8", model=yunet)
        self.assertEqual(set(self.ports("outputs")), {"cls_8"})
        before = self.ports("inputs")
        self.made("--free-shapes", model=yunet)
        self.assertNotEqual(self.ports("inputs"), before)
        self.assertGreater(len(self.ports("outputs")), 1)
        name = "/model/embeddings/LayerNorm/LayerNormalization_output_0"
        self.made("--level", "1", *(word for i in (name, "input_ids", "attention_mask") for word in ("--extract-input", i)))
        self.assertIn(name, self.ports("inputs"))

    def test_messages(self):
        self.assertEqual(json.loads(self.good(BERT, "-o", "j.onnx", "--json"))["path"], "j.onnx")
        few, more = (self.run_pith(BERT, "-o", "m.onnx", "-f", *flags).stderr.count(b"\n") for flags in ((), ("--verbose",)))
        self.assertGreater(more, few)

    test_schemes = test_blocks = test_int8 = test_tables = test_texts = test_pairs = test_static = test_target = None


class Card(Options):
    stdin = None

    def card(self, verb, *arguments, model=DATA / "modules/dense-plain", out="x.onnx"):
        self.good(model, "-o", out, "-f", "--card", "-q", *arguments, verb=verb)
        return (self.dir / (out + "model.onnx" if out.endswith("/") else out)).with_suffix(".onnx.md").read_text()

    def check_files(self, text, folder):
        rows = [line.split("|")[1:4] for line in text.split("SHA-256")[1].splitlines()[2:]]
        names = [name.strip(" `") for name, *_ in rows]
        for name, (_, size, sha) in zip(names, rows):
            data = (folder / name).read_bytes()
            self.assertEqual((int(size), sha.strip(" `")), (len(data), hashlib.sha256(data).hexdigest()))
        return names

    def test_cards(self):
        text = self.card("export", "--dtype", "f16", "--pool")
        self.assertIn("| type of weights | f16 |", text)
        self.assertIn("largest difference of an element", text)
        self.assertEqual(self.check_files(text, self.dir), ["x.onnx"])
        self.assertEqual(self.check_files(self.card("export", "--external"), self.dir), ["x.onnx", "x.onnx.data"])
        names = self.check_files(self.card("quantize", "--scheme", "q4", out="out/"), self.dir / "out")
        self.assertIn("tokenizer.json", names)
        self.write("words.txt", *(f"a b {'c ' * i}" for i in range(14)))
        text = self.card("quantize", "--eval", "words.txt")
        for line in ("| scheme | int8 |", "14 texts of words.txt", "overlap of the 10 nearest texts"):
            self.assertIn(line, text)
        text = self.card("optimize", model=DATA / "models/bert-base-script17-sdpa/model.onnx")
        self.assertIn("| fusions |", text)
        self.assertIn("no: the model is not run on texts", text)
        for name in ("x.onnx", "x.onnx.data"):
            (self.dir / name).unlink()
        self.bad(1, DATA / "modules/dense-plain", "-o", "x.onnx", "--card", verb="export", says="x.onnx.md exists; --force replaces it")
        self.assertFalse((self.dir / "x.onnx").exists())


class Convert(Options):
    verb = "convert"
    stdin = None

    def test_both_ways(self):
        model = DATA / "models/bert-base-script17-sdpa/model.onnx"
        text = self.good(model, "-q")
        self.assertTrue(text.startswith(b"<\n  ir_version: "))
        self.assertEqual(self.good(model, "-q", "-o", "m.txt"), b"")
        self.assertEqual((self.dir / "m.txt").read_bytes(), text)
        self.good("m.txt", "-o", "m.onnx")
        self.assertEqual(self.good("m.onnx"), text)
        (self.dir / "verified").mkdir()
        (self.dir / "m.onnx").rename(self.dir / "verified/model.onnx")
        for data in model.parent.glob("test_data_set_*"):
            (self.dir / "verified" / data.name).symlink_to(data)
        self.assertIn(b"1 passed", self.good("verified", verb="verify"))
        self.bad(2, says="give one file")
        self.bad(2, "m.txt", "-o", "m.txt", says="is an input too")

    def test_to(self):
        self.write("m.txt", "g (float[2] x) => (float[2] y) { y = Relu (x) }")
        self.bad(1, "m.txt", "--to", "text", says="the file is text already")
        self.good("m.txt", "--to", "onnx", "-o", "m.onnx")
        self.bad(1, "m.onnx", "--to", "onnx", says="the file is ONNX, not text, already")
        self.write("bad.txt", "g (float[2] x) => (float[2] y) {", "  y = Relu x", "}")
        self.bad(1, "bad.txt", "-o", "bad.onnx", says="bad.txt: line 2, column 12: '(' is expected, not 'x'")
        self.assertFalse((self.dir / "bad.onnx").exists())

    def test_left_out(self):
        model = DATA / "models/bert-base-dynamo18-eager/model.onnx"
        self.assertIn(b"left out, since text has no place for it: doc strings of parts (", self.run_pith(model).stderr)
        self.assertEqual(self.run_pith(model, "--quiet").stderr, b"")


class Places(Options):
    """The flag, then the environment, then the configuration, then the model, then the default."""

    def test_order(self):
        env = {"PITH_THREADS": "4"}
        usual = min(self.info()["processor"][key] for key in ("cores", "usable_threads"))
        self.assertEqual(self.threads(), usual)
        self.config(threads=5)
        self.assertEqual(self.threads(), 5)
        self.assertEqual(self.threads(env=env), 4)
        self.assertEqual(self.threads("-t", "3", env=env), 3)
        self.assertEqual(self.threads("--config", "", env=env), 4)
        self.assertEqual(self.threads(env={"PITH_THREADS": ""}), 5)  # an empty variable is none

    def test_model_below_the_configuration(self):
        """The default model says that vectors have length 1."""
        def length(**keywords):
            return round(float(np.linalg.norm(self.rows(stdin=b"a cat\n", **keywords))), 3)
        self.assertEqual(length(), 1)
        self.config(normalize=False)
        self.assertNotEqual(length(), 1)
        self.assertEqual(length(env={"PITH_NORMALIZE": "true"}), 1)
        self.assertEqual(self.rows("--normalize", stdin=b"a cat\n"), self.rows("--config=", stdin=b"a cat\n"))

    def test_where_the_configuration_is(self):
        self.config(max_batch_size=8)
        self.assertEqual(self.counted()["windows"], 8)
        self.assertEqual(self.info()["config"], str(self.dir / "pith/config.json"))
        self.write("second.json", '{"max_batch_size": 16}')
        self.assertEqual(self.counted(env={"PITH_CONFIG": "second.json"})["windows"], 4)
        self.write("third.json", '{"max_batch_size": 32}')
        self.assertEqual(self.counted("--config", "third.json", env={"PITH_CONFIG": "second.json"})["windows"], 2)
        self.write(".config/pith.json", "{}")
        home = {"HOME": str(self.dir / "home"), "XDG_CONFIG_HOME": ""}
        (self.dir / "home/.config/pith").mkdir(parents=True)
        (self.dir / "home/.config/pith/config.json").write_text('{"max_batch_size": 4}')
        (self.dir / "home/.cache").symlink_to(Path.home() / ".cache")
        self.assertEqual(self.counted(env=home)["windows"], 16)
        for arguments, env in ((("--config", "none.json"), {}), ((), {"PITH_CONFIG": "none.json"})):
            self.bad(1, *arguments, env=env, says=("none.json", "No such file"))

    def test_unknown_keys(self):
        for key, near in (("threds", "threads"), ("batch-tokens", "batch_tokens"), ("memory_limits", "memory_limit"), ("output", None)):
            self.config(**{key: 1})
            result = self.bad(2, says=(f'"{key}" is no option', str(self.dir / "pith/config.json"), 'did you mean "'))
            if near:
                self.assertIn(f'did you mean "{near}"?', result.stderr.decode())

    def test_keys_of_other_commands(self):
        self.config(timeout=7, max_batch_size=8)
        self.assertEqual(self.counted()["windows"], 8)

    def test_files_that_are_no_configuration(self):
        for text, says in (("", "expected near end of file"), ("[1]", "one JSON object"), ("{", "config.json:"), ('{"threads": 1, "threads": 2}', "duplicate"),
                           ('{"threads": [1]}', "threads must be a number from 1 to 4096, cores or max, not an array"),
                           ('{"threads": null}', "not null"), ('{"threads": {}}', "not an object"),
                           ('{"preset": "fast"}', "config.json: preset is one of none|throughput"), (" " * (1 << 20) + "{}", "larger than 1 MiB")):
            self.write("pith/config.json", text)
            result = self.run_pith()
            self.assertIn(result.returncode, (1, 2), text[:40])
            self.assertIn(says, result.stderr.decode())

    def test_commands_without_options_elsewhere(self):
        """A broken configuration does not stop what does not read it."""
        self.write("pith/config.json", "{")
        self.good("--json", verb="models")

    def wrong_values(self):
        for row in ROWS:
            wrong = {"STRING": None, "LIST": None}.get(row["kind"], "x y")
            if "anywhere" in row and wrong and row["id"] in USERS:
                yield row, wrong, USERS[row["id"]][0]

    def test_wrong_values(self):
        """Each place is named, with the value and what there is to choose from."""
        choice = {"FLAG": "true or false", "SWITCH": "true or false", "WHETHER": "true or false", "CHOICE": "is one of", "BYTES": "must be bytes"}
        tried = 0
        for row, wrong, verb in self.wrong_values():
            with self.subTest(row["id"]):
                says = (f"not '{wrong}'", choice.get(row["kind"], "must be a number"))
                self.bad(2, env={table.variable(row): wrong}, verb=verb, says=(table.variable(row), *says))
                self.config(**{table.key(row): wrong})
                self.bad(2, verb=verb, says=(f"config.json: {table.key(row)}", *says))
                self.config()
                self.bad(2, f"--{row['name']}={wrong}", verb=verb, says=(f"--{row['name']}", *says))
                if "max" in row:
                    over = {"INT32_MAX": 1 << 31, "1 << 24": (1 << 24) + 1}.get(row["max"]) or int(row["max"]) + 1
                    self.bad(2, env={table.variable(row): str(over)}, verb=verb, says=f"not '{over}'")
                tried += 1
        self.assertGreater(tried, 25)

    def test_flags_can_be_switched_off(self):
        self.config(check=True)
        self.good(BERT, "-o", "m.pith", "-q", verb="compile", env={"PITH_CHECK": "off"})
        self.bad(1, "m.pith", verb="inspect", says="as written")
        self.good("m.pith", "--no-check", verb="inspect")
        self.bad(2, "--no-jsonl", stdin=b"", says="unknown option '--no-jsonl'")

    def test_pictures_with_options_of_texts_elsewhere(self):
        """max_length in the configuration is not a wish of this call."""
        self.config(max_length=5)
        result = self.run_pith("--images", "none.jpg")
        self.assertNotIn("are for texts", result.stderr.decode())
        self.bad(2, "--images", "--max-length", "5", "none.jpg", says="are for texts")


class Presets(Options):
    def test_values_are_options(self):
        known = {row["name"]: row for row in ROWS}
        names = [name for name, *_ in table.presets()]
        self.assertEqual(known["preset"]["choices"].split("|"), ["none", *names])
        for name, _, values in table.presets():
            for value in values:
                self.assertIn("anywhere", known[re.split("<?=", value)[0]], f"{name}: {value}")

    def test_each(self):
        for name, _, values in table.presets():
            with self.subTest(name):
                values = dict(value.split("=", 1) for value in values)
                result = self.run_pith("--preset", name, "lines.txt", "-o", "v.npy", "--format", "npy", "--stats-file", "stats.json")
                self.assertEqual(result.returncode, 0, result.stderr.decode())
                said = result.stderr.decode()
                self.assertTrue("'cuda'" in said if "cuda" in values.get("ep", "") else not said, said)
                counted = json.loads((self.dir / "stats.json").read_text())["statistics"]
                found = self.info()["processor"]
                threads = {"cores": min(found["cores"], found["usable_threads"]), "max": found["hardware_threads"]}
                if "threads" in values:
                    self.assertEqual(round(counted["thread_ns"] / counted["busy_ns"]), threads[values["threads"]])
                for key in ("max-batch-size", "max-batch-size<"):
                    self.assertGreaterEqual(counted["windows"], 64 / int(values.get(key, 64)))
                self.assertEqual((self.dir / "debug_profile.json").exists(), "profile" in values)
                (self.dir / "debug_profile.json").unlink(missing_ok=True)

    def test_debug_refuses_bf16(self):
        self.bad(2, "--preset", "debug", "--precision", "bf16", stdin=b"a\n", says="--deterministic")

    def windows(self, *arguments, **keywords):
        """How many batches lines.txt was: of 64 texts with the preset gpu."""
        return self.counted(*arguments, **keywords)["windows"]

    def test_place(self):
        """Just below the source that names it."""
        gpu, eight = {"PITH_PRESET": "gpu"}, {"PITH_MAX_BATCH_SIZE": "8"}
        self.config(max_batch_size=16)
        self.assertEqual(self.windows(), 4)
        self.assertEqual(self.windows("--preset", "gpu"), 1)
        self.assertEqual(self.windows("--preset", "gpu", "--max-batch-size", "32"), 2)
        self.assertEqual(self.windows("--preset", "gpu", env=eight), 1)
        self.assertEqual(self.windows(env=gpu), 1)
        self.assertEqual(self.windows(env={**gpu, **eight}), 8)
        self.assertEqual(self.windows("--preset", "debug", env=gpu), 4)
        self.assertEqual(self.windows("--preset", "none", env=gpu), 4)
        self.config(max_batch_size=16, preset="gpu")
        self.assertEqual(self.windows(), 4)
        self.config(preset="memory")
        self.assertEqual(self.windows(), 8)

    def test_lower_only(self):
        """The preset memory never raises what is there."""
        self.config(max_batch_size=4)
        self.assertEqual(self.windows("--preset", "memory"), 16)
        self.config(max_batch_size=32)
        self.assertEqual(self.windows("--preset", "memory"), 8)
        self.assertEqual(self.windows("--preset", "memory", "--max-batch-size", "32"), 2)
        usual = {row["name"]: row.get("initial") for row in ROWS}
        (values,) = (values for name, _, values in table.presets() if name == "memory")
        for name, value in (v.split("<=") for v in values if "<" in v):
            if usual[name]:
                self.assertLess(*(float(text.replace("M", "")) for text in (value, usual[name])), name)

    def test_relative_to_the_machine(self):
        for name, _, values in table.presets():
            for value in values:
                self.assertNotRegex(value, r"^threads<?=\d", f"the preset {name} sets a number of threads")


class Info(Options):
    verb = "info"

    def test_json(self):
        found = self.info()
        self.assertEqual(set(found), {"version", "compiler", "processor", "memory", "runtimes", "backends", "extra_operators", "libraries", "cache", "config"})
        self.assertEqual(found["extra_operators"], [])
        self.assertEqual(set(found["processor"]), {"model", "isa", "isas", "extensions", "cores", "hardware_threads", "cpu_quota",
                                                   "usable_threads", "l1d_bytes", "l2_bytes", "l3_bytes"})
        self.assertIn(found["processor"]["isa"], found["processor"]["isas"])
        self.assertEqual(found["processor"]["hardware_threads"], len(os.sched_getaffinity(0)))
        self.assertEqual(set(found["memory"]), {"bytes", "available_bytes", "group_limit_bytes", "group_used_bytes", "used", "stalled"})
        self.assertEqual(found["memory"]["bytes"], os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        self.assertIn("builtin", found["runtimes"])
        self.assertIsNone(found["config"])
        for name, library in found["libraries"].items():
            self.assertTrue(library["found"] or library["why"], name)
        cache = self.info_with({"PITH_CACHE": str(self.dir)})["cache"]
        self.assertEqual(cache, str(self.dir))

    def info_with(self, env):
        return json.loads(self.good("--json", env=env))

    def test_limited_processor(self):
        found = self.info_with({"PITH_ISA": "scalar"})["processor"]
        self.assertEqual((found["isa"], found["extensions"]), ("scalar", []))
        first = str(min(os.sched_getaffinity(0)))
        out = subprocess.run(["taskset", "-c", first, PITH, "info", "--json"], capture_output=True, env=self.settings, check=True).stdout
        self.assertEqual([json.loads(out)["processor"][k] for k in ("cores", "hardware_threads", "usable_threads")], [1, 1, 1])

    def test_table(self):
        text = self.good().decode()
        for name in ("processor.isa", "memory.bytes", "libraries.curl.found", "cache", "config"):
            self.assertRegex(text, rf"(?m)^{name} +\S")
        self.bad(2, "x", says="takes no arguments")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
