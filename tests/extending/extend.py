#!/usr/bin/env python3
"""Follows docs/extending.md literally in a copy of the tree: each step may only add files and one list line.

usage: extend.py SOURCE_DIR WORK_DIR [--jobs N]
Then builds, runs a model with the new operator, checks that the new pass made it from Add(x, x), that every level's
kernel gives the same bits, that a tokenizer.json with the new step tokenises, that a file of the new format and a
directory of the new family open, that the operator of the new rule runs on packed texts, and that a program (use_head.c)
gets the new head's results.
"""
import argparse
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

BLOCK = re.compile(r"^```(\w+) file=(\S+)\n(.*?)^```", re.M | re.S)


def check(condition, text):
    if not condition:
        sys.exit(f"extending: {text}")


def insert(path, line):
    """Into its sorted place; at the end where the order has a meaning: passes run in theirs, verbs are listed in theirs."""
    lines = path.read_text().splitlines()
    entries = [i for i, old in enumerate(lines) if re.match(r"[A-Z_]+\(", old)]
    same = [i for i in entries if lines[i].split("(")[0] == line.split("(")[0]]
    if path.name in ("passes.def", "verbs.def"):
        place = (same or [len(lines) - 1])[-1] + 1
    elif path.name == "options.def":  # its rows have several lines
        place = len(lines)
    else:
        key = lambda text: re.sub(r"\W+", " ", text).strip()
        later = [i for i in same if key(lines[i]) > key(line)]
        place = later[0] if later else (same[-1] + 1 if same else len(lines))
    lines.insert(place, line)
    path.write_text("\n".join(lines) + "\n")


def run(command, **more):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **more)
    check(done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


WORDS = {"tokenizer.json": {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
                            "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
                            "model": {"type": "WordLevel", "vocab": {w: i for i, w in enumerate("u a b c d e f g".split())},
                                      "unk_token": "u"}}}


def put(folder, files):
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))


def vectors(pith, folder, texts):
    lines = run([pith, "embed", "-m", folder], input="".join(t + "\n" for t in texts)).splitlines()
    return np.array([json.loads(line) for line in lines], np.float32)


def family(pith, source, work):
    """A directory of the new family gives the vectors of DistilBERT's, whose weights it has."""
    found = {}
    for name in ("distilbert", "parrot"):
        folder = work / name
        folder.mkdir(exist_ok=True)
        shutil.copy(source / "tests/data/hf/distilbert/model.safetensors", folder)
        config = json.loads((source / "tests/data/hf/distilbert/config.json").read_text())
        put(folder, {"config.json": {**config, "model_type": name}, **WORDS})
        found[name] = vectors(pith, folder, ["a b c", "d"])
    check(np.array_equal(found["parrot"], found["distilbert"]) and found["parrot"].any(), f"family: {found}")


def task(pith, source, work):
    """A checkpoint of the new class has one more output, made from the other one."""
    folder = work / "length"
    folder.mkdir(exist_ok=True)
    shutil.copy(source / "tests/data/hf/distilbert/model.safetensors", folder)
    config = json.loads((source / "tests/data/hf/distilbert/config.json").read_text())
    put(folder, {"config.json": {**config, "architectures": ["DistilBertForLength"]}, **WORDS})
    ids = np.array([[5, 6, 7], [8, 9, 10]])
    for name, values in (("input_ids", ids), ("attention_mask", np.ones_like(ids))):
        np.save(folder / f"{name}.npy", values)
    out = work / "out_length"
    run([pith, "run", folder, "-i", f"input_ids={folder}/input_ids.npy", "-i", f"attention_mask={folder}/attention_mask.npy",
         "-o", out])
    rows, lengths = np.load(out / "0_last_hidden_state.npy"), np.load(out / "1_lengths.npy")
    check(np.allclose(lengths, (rows ** 2).sum(2, keepdims=True), rtol=1e-5), f"task: {lengths}")


def ragged_rule_and_head(pith, source, work, tree, build):
    """LpNormalization runs on packed texts; the head gives the mean square of their rows."""
    folder = work / "lp"
    folder.mkdir(exist_ok=True)
    table = np.random.default_rng(1).standard_normal((8, 6)).astype(np.float32)
    ports = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "sequence"]),
             helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", 6])]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
             helper.make_node("LpNormalization", ["rows"], ["unit"], axis=-1, p=1),
             helper.make_node("Mul", ["unit", "three"], ["last_hidden_state"])]
    weights = [onnx.numpy_helper.from_array(table, "table"), onnx.numpy_helper.from_array(np.float32(3), "three")]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx")
    put(folder, WORDS)
    told = json.loads(run([pith, "inspect", "--json", folder]))
    check(told["ragged"] and "LpNormalization" in told["steps"], f"rule: {json.dumps(told)[:800]}")
    texts = {"a b c": [1, 2, 3], "g": [7]}
    rows = [3 * table[ids] / np.abs(table[ids]).sum(1, keepdims=True) for ids in texts.values()]
    got = vectors(pith, folder, texts)
    check(np.allclose(got, [r.mean(0) for r in rows], atol=1e-6), f"rule: {got}")
    program = work / "use_head"
    libraries = run(["pkg-config", "--static", "--libs", "pith"], env={**os.environ, "PKG_CONFIG_PATH": str(build)}).split()
    run(["cc", "-std=c11", "-D_GNU_SOURCE", f"-I{tree / 'src'}", f"-I{tree / 'include'}", source / "tests/extending/use_head.c",
         f"-L{build}", *libraries, "-o", program])
    energies = [float(line) for line in run([program, folder, *texts]).split()]
    check(np.allclose(energies, [np.mean(r.astype(np.float64) ** 2) for r in rows], rtol=1e-5), f"head: {energies}")


def same_content(source, target):
    """Makes target a copy of source. Files that are the same keep their dates, so that they are not compiled again."""
    wanted = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
    for path in [path for path in target.rglob("*") if path.is_file()]:
        if path.relative_to(target) not in wanted:
            path.unlink()
    for name in wanted:
        path = target / name
        if not path.exists() or path.read_bytes() != (source / name).read_bytes():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / name, path)


def follow(source, tree):
    """The tree with the blocks of the page; a step may only add files and one list line."""
    tree.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=tree.parent) as folder:
        anew = Path(folder)
        for name in ("CMakeLists.txt", "include", "src", "cli", "image", "cmake", "tools"):
            if (source / name).is_dir():
                shutil.copytree(source / name, anew / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source / name, anew / name)
        added = 0
        for kind, name, text in BLOCK.findall((source / "docs/extending.md").read_text()):
            path = anew / name
            if kind == "def":
                check(text.count("\n") == 1, f"{name}: more than one list line")
                insert(path, text.strip())
            else:
                check(not path.exists(), f"{name} exists already: a step may only add files")
                path.write_text(text)
            added += 1
        check(added == 27, f"{added} blocks found in docs/extending.md, 27 expected")
        same_content(anew, tree)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--jobs", default=str(len(os.sched_getaffinity(0))))
    args = parser.parse_args()
    tree, build = args.work / "tree", args.work / "build"
    follow(args.source, tree)
    # Hardly optimised, which the result does not depend on: it is the compiling that takes long.
    run(["cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DPITH_WERROR=ON", "-DPITH_BUILD_IMAGE=OFF", "-DCMAKE_BUILD_TYPE=Debug",
         "-DCMAKE_C_FLAGS_DEBUG=-O1"])
    run(["cmake", "--build", build, "-j", args.jobs, "--target", "pith", "pith_static"])
    pith = build / "pith"
    run([sys.executable, args.source / "tests/select/needs.py", pith, tree, build, "Tables"])

    x = np.linspace(-3, 3, 37).astype(np.float32)
    np.save(args.work / "x.npy", x)
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n"]) for n in ("x", "y")]
    for op, inputs, domain in (("Twice", ["x"], "example"), ("Add", ["x", "x"], "")):
        graph = helper.make_graph([helper.make_node(op, inputs, ["y"], domain=domain)], "g", ports[:1], ports[1:])
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("example", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), args.work / f"{op}.onnx")
    for level in ("scalar", "avx2", "avx512", "neon"):
        out = args.work / f"out_{level}"
        run([pith, "run", args.work / "Twice.onnx", "-i", f"x={args.work / 'x.npy'}", "-o", out], env={**os.environ, "PITH_ISA": level})
        y = np.load(next(out.glob("*.npy")))
        check(np.array_equal(y, 2 * x), f"{level}: Twice gives {y}")
    steps = json.loads(run([pith, "inspect", "--json", args.work / "Add.onnx"]))
    check("Twice" in json.dumps(steps), f"the pass did not make Twice from Add(x, x): {json.dumps(steps)[:500]}")

    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": {"type": "Shout"},
                 "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
                 "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "HELLO": 1, "hello": 2}, "unk_token": "[UNK]"}}
    (args.work / "tokenizer.json").write_text(json.dumps(tokenizer))
    ids = run([pith, "tokenize", "-m", args.work / "tokenizer.json"], input="hello\n")
    check(json.loads(ids) == [1], f"Shout: {ids}")
    model = args.work / "third.scale"
    model.write_bytes(b"SCAL" + struct.pack("<f", 3))
    out = args.work / "out_scale"
    run([pith, "run", model, "-i", f"x={args.work / 'x.npy'}", "-o", out])
    y = np.load(next(out.glob("*.npy")))
    check(np.array_equal(y, 3 * x), f"reader: y is {y}")
    model.write_bytes(b"SCAL")
    refused = subprocess.run([pith, "inspect", model], capture_output=True, text=True)
    check(refused.returncode == 1 and "the file has 4 bytes; 8 expected" in refused.stderr, f"reader: {refused}")
    family(pith, args.source, args.work)
    task(pith, args.source, args.work)
    ragged_rule_and_head(pith, args.source, args.work, tree, build)
    letters = run([pith, "count", "--letters", "some", "words"])
    check(letters == "9\n", f"count: {letters}")
    for where in (["help", "count"], ["--man", "count"], ["--completion", "bash"]):
        check("letters" in run([pith, *where]), f"{where} does not know the verb's option")
    check("count the words" in run([pith, "--help", "all"]), "pith --help does not list the verb")
    print("extending: 27 blocks added, built and seen working")


if __name__ == "__main__":
    main()
