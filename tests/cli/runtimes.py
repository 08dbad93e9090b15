#!/usr/bin/env python3
"""--runtime: ONNX Runtime's own library, from the tests' Python environment, against the builtin engine.

usage: runtimes.py PITH SOURCE_DIR [unittest arguments]; needs NumPy, onnx, onnxruntime (tests/requirements.txt), and the
default model as an ONNX file in onnx-dirs beside PITH (tests/embed/onnx_dirs.sh).
"""
import io
import json
import os
import re
import shutil
import sys
import unittest
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from command import PITH, SOURCE, Command

PACKAGE = Path(onnxruntime.__file__).parent
LIBRARY = max((PACKAGE / "capi").glob("libonnxruntime.so.*"))
MINILM = PITH.parent / "onnx-dirs/plain"
YUNET = SOURCE / "tests/data/yunet/yunet-s-640-other-sizes/model.onnx"
LINES = (SOURCE / "tests/data/sts/stsb-en-dev.csv").read_text().splitlines()[:60]
TEXT = "".join(line + "\n" for line in LINES).encode()
# ONNX Runtime multiplies this file's 8-bit weights with saturation on this kind of processor, as its documents say.
SATURATES = {"jina-v2-script17-qdq"}


def plain(**variables):
    """The environment without the variables that name a library."""
    env = {k: v for k, v in os.environ.items() if k not in ("ORT_DYLIB_PATH", "VIRTUAL_ENV")}
    return {**env, **{k: str(v) for k, v in variables.items()}}


class Runtimes(Command):
    stdin = TEXT

    def run_pith(self, *arguments, env=None, **keywords):
        return super().run_pith(*arguments, env=env or plain(), **keywords)

    def vectors(self, *arguments, **keywords):
        return np.load(io.BytesIO(self.good("-m", MINILM, "--format", "npy", *arguments, **keywords)))

    def small_model(self, op="Relu", domain="", opset=17, **attributes):
        node = helper.make_node(op, ["x"], ["y"], domain=domain, **attributes)
        ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 3]) for n in "xy"]
        model = helper.make_model(helper.make_graph([node], "g", ports[:1], ports[1:]), ir_version=8,
                                  opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)])
        onnx.save(model, self.dir / "small.onnx")
        np.save(self.dir / "x.npy", np.array([[-1, 2, 3]], np.float32))
        return "small.onnx", "-i", "x=x.npy", "-o", "out"


class MiniLM(Runtimes):
    def test_vectors(self):
        builtin = self.vectors()
        ort = self.vectors("--runtime", "ort", "--ort-library", LIBRARY)
        self.assertEqual(builtin.shape, (len(LINES), 384))
        self.assertLess(np.abs(builtin - ort).max(), 1e-5)
        self.assertTrue((builtin != ort).any())  # another engine was at work
        np.testing.assert_array_equal(builtin, self.vectors("--runtime", "auto", "--ort-library", LIBRARY))

    def test_threads(self):
        one = self.vectors("--runtime", "ort", "--ort-library", LIBRARY, "-t", "1")
        two = self.vectors("--runtime", "ort", "--ort-library", LIBRARY, "-t", "2")
        self.assertLess(np.abs(one - two).max(), 1e-6)

    def test_levels_and_settings(self):
        plainly = self.vectors("--runtime", "ort", "--ort-library", LIBRARY, "--ort-level", "none", "--ort-config",
                               "session.intra_op.allow_spinning=0", "--ep", "cpu", "--runtime-strict")
        self.assertLess(np.abs(plainly - self.vectors()).max(), 1e-5)
        events = []
        for level in ("none", "all"):
            self.vectors("--runtime", "ort", "--ort-library", LIBRARY, "--ort-level", level, "--ort-profile", level)
            names = [set(re.findall(rb'"name" ?:"([^"]*)_kernel_time"', trace.read_bytes())) for trace in self.dir.glob(f"{level}_*.json")]
            events.append(len(set.union(*names)))
        self.assertGreater(events[0], events[1])
        self.bad(1, "-m", MINILM, "--runtime", "ort", "--ort-library", LIBRARY, "--ort-config", "nonsense",
                 "--runtime-strict", says="not of the form key=value")

    def test_other_verbs(self):
        two = ("a cat sat", "a kitten rested")
        numbers = [float(self.good("-m", MINILM, *r, *two, verb="similarity"))
                   for r in ((), ("--runtime", "ort", "--ort-library", LIBRARY))]
        self.assertAlmostEqual(*numbers, places=4)
        self.bad(1, "-m", MINILM, "--runtime", "ort", "--ort-library", LIBRARY, "--precision", "int8",
                 says="precision int8 and bf16 are the builtin runtime's")


class Search(Runtimes):
    def test_where_it_is_found(self):
        model = self.small_model()
        for arguments, env in ((("--ort-python", PACKAGE.parent), None), (("--ort-python", sys.prefix), None),
                               ((), plain(VIRTUAL_ENV=sys.prefix)), ((), plain(ORT_DYLIB_PATH=LIBRARY))):
            self.good(*model, "--runtime", "ort", "--runtime-strict", *arguments, verb="run", env=env)
        shutil.copy(LIBRARY, self.dir / "libonnxruntime.so.1")  # the working directory is not searched
        self.bad(1, *model, "--runtime", "ort", "--runtime-strict", verb="run", says="is not there")
        self.good(*model, "--runtime", "ort", "--runtime-strict", "--ort-library", "libonnxruntime.so.1", verb="run")

    def test_falls_back(self):
        model = self.small_model()
        (self.dir / "text.so").write_text("not a library\n")
        for library, says in (("absent.so", "there is no such file"), ("text.so", "the loader says"),
                              (PITH.parent / "tests/false_ort_null.so", "too old")):
            result = self.run_pith(*model, "--runtime", "ort", "--ort-library", library, verb="run")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stderr.count(b"warning: the builtin runtime runs the model instead of ort"), 1)
            self.assertEqual(result.stderr.count(b"\n"), 1)
            self.assertIn(says, result.stderr.decode())
            np.testing.assert_array_equal(np.load(self.dir / "out/0_y.npy"), [[0, 2, 3]])
            self.bad(1, *model, "--runtime", "ort", "--runtime-strict", "--ort-library", library, verb="run", says=says)
            self.good(*model, "--runtime", "auto", "--ort-library", library, verb="run")

    def test_providers(self):
        model = self.small_model()
        self.bad(1, *model, "--runtime", "ort", "--runtime-strict", "--ort-library", LIBRARY, "--ep", "coreml:a=b",
                 verb="run", says=("none of the providers can be used", "CPUExecutionProvider"))
        result = self.run_pith(*model, "--runtime", "ort", "--ort-library", LIBRARY, "--ep", "cuda,cpu", verb="run")
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"the provider cuda is skipped", result.stderr)
        result = self.run_pith(*model, "--runtime", "ort", "--ort-library", LIBRARY, "--ep", "cuda:device_id=0,arena=1,cpu", "--stats-file",
                               "ort.json", verb="run")
        counts = json.loads((self.dir / "ort.json").read_text())["statistics"]
        self.assertEqual([counts[f"device_{n}"] for n in ("choices", "fallbacks", "successes")], [2, 1, 1])
        self.assertEqual(result.stderr.count(b"is skipped"), 1, result.stderr)
        for ep in ("nowhere,cpu", "nowhere:a=1,b=2,cpu"):
            result = self.run_pith(*model, "--ep", ep, "--stats-file", "stats.json", verb="run")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(b"'nowhere'", result.stderr)
            self.assertGreater(json.loads((self.dir / "stats.json").read_text())["statistics"]["device_fallbacks"], 0)
        self.good(*model, "--ep", "auto", verb="run")
        self.bad(1, *model, "--runtime", "ort", "--runtime-strict", "--ort-library", LIBRARY, "--ep", "cuda:device",
                 verb="run", says="key=value")


class Models(Runtimes):
    def test_auto(self):
        """An operator that Pith lacks and ONNX Runtime has kept from its first days."""
        model = self.small_model("ScaledTanh", opset=9, alpha=2.0, beta=0.5)
        self.bad(1, *model, verb="run", says="ScaledTanh")
        self.good(*model, "--runtime", "auto", "--ort-library", LIBRARY, verb="run")
        np.testing.assert_allclose(np.load(self.dir / "out/0_y.npy"), 2 * np.tanh(0.5 * np.array([[-1, 2, 3]])), rtol=1e-6)

    def test_unknown_operator(self):
        model = self.small_model("Rolu")
        self.bad(1, *model, "--runtime", "auto", "--ort-library", LIBRARY, verb="run",
                 says=("Rolu", "ONNX Runtime cannot run it either"))

    def test_networks(self):
        report = json.loads(self.run_pith("--runtime", "ort", "--ort-library", LIBRARY, "--json",
                                          SOURCE / "tests/data/models", SOURCE / "tests/data/families", verb="verify").stdout)
        self.assertGreater(report["passed"], 90)
        self.assertEqual({r["name"] for r in report["results"] if r["status"] == "failed"} - SATURATES, set())

    def test_dimensions(self):
        """ONNX Runtime refuses sizes that a file does not declare; the builtin engine takes them."""
        np.save(self.dir / "x.npy", np.zeros((1, 3, 320, 320), np.float32))
        self.bad(1, YUNET, "-i", "input=x.npy", "--runtime", "ort", "--ort-library", LIBRARY, verb="run", says="Got: 320 Expected: 640")

    def test_profile(self):
        self.good(*self.small_model(), "--runtime", "ort", "--ort-library", LIBRARY, "--ort-profile", "trace", verb="run")
        (trace,) = self.dir.glob("trace*.json")
        self.assertIn(b"Session", trace.read_bytes())


class Compare(Runtimes):
    verb = "compare"

    def compared(self, *arguments):
        rows = json.loads(self.good("--json", "--ort-library", LIBRARY, *arguments))["outputs"]
        return {r["name"]: r for r in rows}

    def test_yunet(self):
        for size in ("640x640",):
            rows = self.compared(YUNET, "--input-shape", f"input=1x3x{size}", "--seed", "3")
            self.assertEqual(list(rows), [f"{k}_{s}" for k in ("cls", "obj", "bbox", "kps") for s in (8, 16, 32)])
            for name, r in rows.items():
                self.assertLess(r["max_abs"], 1e-4, name)
                self.assertGreater(r["elements"], 0)
            self.assertEqual(rows, self.compared(YUNET, "--input-shape", f"input=1x3x{size}", "--seed", "3"))
            self.assertNotEqual(rows, self.compared(YUNET, "--input-shape", f"input=1x3x{size}", "--seed", "4"))

    def test_numbers(self):
        """The differences are those of the two results, which are computed here again."""
        model, *_ = self.small_model("Softmax", axis=1)
        x = np.random.default_rng(5).normal(size=(40, 3)).astype(np.float32) * 9
        np.save(self.dir / "x.npy", x)
        (row,) = self.compared(model, "-i", "x=x.npy").values()
        outputs = []
        for runtime in ("builtin", "ort"):
            library = ("--ort-library", LIBRARY) if runtime == "ort" else ()
            self.good(model, "-i", "x=x.npy", "-o", runtime, "--runtime", runtime, *library, verb="run")
            outputs.append(np.load(self.dir / runtime / "0_y.npy").astype(float))
        difference = np.abs(outputs[0] - outputs[1])
        self.assertGreater(difference.max(), 0)
        self.assertAlmostEqual(row["max_abs"], difference.max(), delta=1e-7 * difference.max())
        self.assertAlmostEqual(row["max_rel"], (difference / np.maximum(*np.abs(outputs))).max(), delta=1e-7 * row["max_rel"])
        self.assertEqual((row["element"], row["elements"]), (int(difference.argmax()), 120))
        self.bad(1, model, "-i", "x=x.npy", "--ort-library", LIBRARY, "--atol", "0", says="output 'y' differs")
        self.bad(1, model, "-i", "x=x.npy", "--ort-library", LIBRARY, "--rtol", "0", says="output 'y' differs")
        self.good(model, "-i", "x=x.npy", "--ort-library", LIBRARY, "--atol", "1e-6", "--rtol", "1e-2")

    def test_inner(self):
        """The first value in the order of nodes that differs is named; its numbers are those of a model that ends there."""
        h, t = onnx.helper, onnx.TensorProto.FLOAT
        nodes = [h.make_node("Relu", ["x"], ["kept"]), h.make_node("Split", ["kept"], ["left", "right"], num_outputs=2, axis=1),
                 h.make_node("Softmax", ["left"], ["soft"], axis=1), h.make_node("Softmax", ["kept"], ["z"], axis=0),
                 h.make_node("SequenceConstruct", ["soft"], ["list"]), h.make_node("ConcatFromSequence", ["list"], ["y"], axis=0)]

        def save(name, outputs):
            graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", t, [40, 6])],
                                 [h.make_tensor_value_info(o, t, None) for o in outputs])
            onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=9), self.dir / name)

        save("m.onnx", ["y", "z"])
        save("soft.onnx", ["soft"])
        np.save(self.dir / "x.npy", np.random.default_rng(5).normal(size=(40, 6)).astype(np.float32) * 9)
        given = ("-i", "x=x.npy", "--ort-library", LIBRARY)
        (want,) = json.loads(self.good("soft.onnx", *given, "--json", "--optimization", "0"))["outputs"]
        self.assertGreater(want["max_abs"], 0)
        for limit in (("--atol", want["max_abs"] / 2), ("--rtol", want["max_rel"] / 2)):
            result = self.run_pith("m.onnx", *given, "--json", "--inner", *limit)
            inner = json.loads(result.stdout)["inner"]
            self.assertEqual(inner, {"values": 6, "first": {**want, "index": 3}})
            self.assertRegex(self.run_pith("m.onnx", *given, "--inner", *limit).stdout.decode(), "number 3, 'soft': max_abs")
        self.assertEqual(json.loads(self.good("m.onnx", *given, "--json", "--inner"))["inner"], {"values": 6, "first": None})
        self.assertNotIn("inner", json.loads(self.good("m.onnx", *given, "--json")))
        self.assertIn(b"none of 6 inner values differs", self.good("m.onnx", *given, "--inner"))

    def test_inner_of_models(self):
        """Old opsets, functions, weights in a file beside the model: every named value is there on both."""
        for model, least, more in ((YUNET, 90, ("--input-shape", "input=1x3x640x640")), (MINILM, 100, ())):
            inner = json.loads(self.good(model, *more, "--ort-library", LIBRARY, "--inner", "--json"))["inner"]
            self.assertGreater(inner["values"], least)
            self.assertIsNone(inner["first"], model)
        model = onnx.load(YUNET)
        onnx.save(model, self.dir / "beside.onnx", save_as_external_data=True, location="w.bin", size_threshold=1024)
        inner = json.loads(self.good("beside.onnx", "--input-shape", "input=1x3x640x640", "--ort-library", LIBRARY, "--inner", "--json"))
        self.assertIsNone(inner["inner"]["first"])

    def test_texts(self):
        rows = self.compared(MINILM)
        self.assertLess(rows["last_hidden_state"]["max_abs"], 1e-5)
        self.bad(1, MINILM, "--ort-library", "absent.so", says="absent.so: there is no such file")


class Bench(Runtimes):
    verb = "bench"

    def test_side_by_side(self):
        for arguments, workload in ((("-m", YUNET, "--input-shape", "input=1x3x640x640"), "tensors"),
                                    (("-m", MINILM, "--workload", "query"), "query")):
            text = self.good(*arguments, "--runtime", "ort,builtin", "--ort-library", LIBRARY, "--rounds", 1, "-t", 1, "--json")
            (r,) = json.loads(text)["results"]
            self.assertEqual((r["workload"], r["threads"], r["calls"]), (workload, 1, 20))
            self.assertTrue(0 < r["max_abs"] < 1e-4)
            ort, builtin = r["runtimes"]
            self.assertEqual((ort["runtime"], builtin["runtime"]), ("ort", "builtin"))
            self.assertEqual(ort["version"], onnxruntime.__version__)
            self.assertEqual(ort["file_bytes"], LIBRARY.stat().st_size)
            for one in r["runtimes"]:
                self.assertTrue(0 < one["seconds_min"] <= one["seconds"] <= one["seconds_p95"])
                self.assertGreater(one["open_seconds"], 0)
            self.assertTrue(0 < r["ratio_p10"] <= r["ratio"] <= r["ratio_p90"])
        self.assertRegex(self.good("-m", MINILM, "--workload", "query", "--runtime", "builtin,ort", "--ort-library", LIBRARY,
                                   "--rounds", 1, "-t", 1).decode(), r"ort takes [\d.]+ times as long as builtin")

    def test_no_ratio_without_parity(self):
        result = self.bad(1, "-m", YUNET, "--input-shape", "input=1x3x640x640", "--runtime", "builtin,ort", "--ort-library",
                          LIBRARY, "--atol", "0", says=("do not give the same", "nothing is measured"))
        self.assertEqual(result.stdout, b"")

    def test_one_runtime(self):
        text = self.good("-m", MINILM, "--workload", "query", "--runtime", "ort", "--ort-library", LIBRARY, "--rounds", 1, "-t", 1, "--json")
        self.assertEqual(json.loads(text)["results"][0]["workload"], "query")
        for wrong in ("builtin,", "abacus", "builtin,ort,auto", ""):
            self.bad(2, "--runtime", wrong)


class Telemetry(Runtimes):
    def stages(self, *arguments, **keywords):
        """Lines of JSON on standard error, and warnings."""
        result = self.run_pith(*arguments, "--telemetry", "json", **keywords)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stderr.decode().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")], [line for line in lines if not line.startswith("{")]

    def test_stages(self):
        face = SOURCE / "tests/data/faces/face_1.jpg"
        for arguments, verb, wanted in ((("-m", MINILM, "-t", "1"), "embed", {"open", "tokenize", "infer", "postprocess", "write"}),
                                        (("-m", YUNET, "-t", "1", face), "detect",
                                         {"open", "decode", "preprocess", "infer", "postprocess", "write"})):
            lines, warnings = self.stages(*arguments, verb=verb)
            self.assertEqual(warnings, [])
            self.assertEqual({line["stage"] for line in lines}, wanted)
            self.assertEqual(lines[0]["stage"], "open")
            for line in lines:
                self.assertEqual((line["command"], line["runtime"], line["requested"], line["fallback"], line["ep"], line["threads"]),
                                 (verb, "builtin", "builtin", 0, "cpu", 1))
                self.assertGreaterEqual(line["ms"], 0)

    def test_runtime(self):
        """ONNX Runtime, and what stands in for it."""
        model = self.small_model()
        lines, warnings = self.stages(*model, "--runtime", "ort", "--ort-library", LIBRARY, verb="run")
        self.assertEqual(({line["runtime"] for line in lines}, warnings), ({"ort"}, []))
        self.assertLessEqual({"open", "decode", "infer", "write"}, {line["stage"] for line in lines})
        lines, warnings = self.stages(*model, "--runtime", "ort", "--ort-library", "absent.so", verb="run")
        self.assertEqual(len(warnings), 1)
        for line in lines:
            self.assertEqual((line["runtime"], line["requested"], line["fallback"]), ("builtin", "ort", 1))
            self.assertIn("absent.so: there is no such file", line["reason"])

    def test_text(self):
        result = self.run_pith("-m", MINILM, "--telemetry", "text")
        self.assertRegex(result.stderr.decode(), r"(?m)^stage=infer command=embed runtime=builtin requested=builtin fallback=0 "
                                                 r"ep=cpu threads=\d+ items=\d+ ms=[\d.]+$")
        self.good("-m", MINILM)  # nothing without the option
        self.good("-m", MINILM, "--profile", "trace.json")
        self.run_pith("-m", MINILM, "--profile", "both.json", "--telemetry", "text")
        steps = [{e["name"] for e in json.loads((self.dir / n).read_text())["traceEvents"]} for n in ("trace.json", "both.json")]
        self.assertEqual(*steps)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
