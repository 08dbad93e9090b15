#!/usr/bin/env python3
"""The list of known models, and models pulled from a hub that the tests are themselves. docs/models.md says the same in words.

usage: pulls.py PITH SOURCE_DIR [unittest arguments]
"""
import datetime
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

from hub_server import COMMIT, Hub, model

PITH, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()


def pith(*arguments, env=None, **keywords):
    return subprocess.run([PITH, *map(str, arguments)], capture_output=True, timeout=120, text=True,
                          env={**os.environ, **(env or {})}, **keywords)


class Known(unittest.TestCase):
    def models(self, *arguments):
        return json.loads(pith("models", "--json", *arguments).stdout)["models"]

    def test_list(self):
        rows = (SOURCE / "cli/hub/known_models.def").read_text().count("\nMODEL(")
        models = self.models()
        self.assertEqual(len(models), rows)
        self.assertEqual({m["kind"] for m in models}, {"dense", "sparse", "multi-vector", "rerank", "image"})
        for m in models:
            self.assertRegex(m["name"], r"^[\w.-]+/[\w.-]+$")
            self.assertRegex(m["repository"], r"^[\w.-]+/[\w.-]+$")
            self.assertGreater(m["dim"] if m["dim"] is not None else 1, 0)
        self.assertEqual(len({(m["name"], m["kind"]) for m in models}), rows)

    def test_one(self):
        bge, = self.models("BAAI/bge-small-en-v1.5")
        self.assertEqual(bge, {"name": "BAAI/bge-small-en-v1.5", "repository": "BAAI/bge-small-en-v1.5",
                               "export": "Qdrant/bge-small-en-v1.5-onnx-Q", "files": ["model_optimized.onnx"],
                               "kind": "dense", "dim": 384, "pooling": "cls", "prompts": "optional", "tokenizer": "WordPiece",
                               "licence": "mit", "bytes": 67000000, "languages": "English", "list": "fastembed"})

    def test_filter(self):
        self.assertTrue(all(m["kind"] == "sparse" for m in self.models("--kind", "sparse")))
        self.assertTrue(all("gte" in m["name"].lower() and m["languages"] == "English" for m in self.models("GTE", "english")))
        none = pith("models", "no-such-model")
        self.assertEqual((none.returncode, none.stdout), (1, ""))
        self.assertIn("no model of the list", none.stderr)

    def test_table(self):
        lines = pith("models", "--kind", "dense").stdout.splitlines()
        starts = [m.start() for m in re.finditer(r"\S+", lines[0])]
        for line in lines[1:]:  # text columns begin where their headings do
            for column in (0, 1):
                self.assertNotEqual(line[starts[column]], " ")
                self.assertEqual(line[starts[column] - 1] if column else " ", " ")


CERTIFICATES = "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"
TAKEN = {"config.json", "modules.json", "1_Pooling/config.json", "tokenizer.json", "vocab.txt", "model.safetensors",
         "2_Dense/model.safetensors", "empty.txt"}


class Pull(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)
        self.place = self.dir / "cache/models/org/model"
        self.hub = self.start(model(), {"model.safetensors", "2_Dense/model.safetensors"})
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith("HF_") and not k.lower().endswith("_proxy") and k not in CERTIFICATES}
        self.env.update(PITH_CACHE=str(self.dir / "cache"), HOME=str(self.dir), XDG_CACHE_HOME=str(self.dir / "xdg"))

    def start(self, *arguments, **keywords):
        hub = Hub(*arguments, **keywords)
        self.addCleanup(hub.close)
        return hub

    def pull(self, *arguments, name="org/model", env={}, code=0, says=()):
        done = subprocess.run([PITH, "pull", name, "--endpoint", self.hub.url, "--attempts", "1", *map(str, arguments)],
                              capture_output=True, text=True, timeout=60, env={**self.env, **env})
        self.assertEqual(done.returncode, code, done.stderr)
        for part in (says,) if isinstance(says, str) else says:
            self.assertIn(part, done.stderr)
        if code:
            self.assertEqual(done.stdout, "")
        return done

    def there(self):
        """The files of the model's directory, which are as the hub has them."""
        names = {str(p.relative_to(self.place)) for p in self.place.rglob("*") if p.is_file()} - {".pith-pull.json"}
        for name in names:
            self.assertEqual((self.place / name).read_bytes(), self.hub.files[name], name)
        return names

    def fails(self, says, *arguments, **keywords):
        """An error; and no directory of the model's name."""
        done = self.pull(*arguments, code=1, says=says, **keywords)
        self.assertFalse(self.place.exists())
        return done

    def asked(self):
        paths = [path for path, _ in self.hub.requests]
        self.hub.requests.clear()
        return paths

    def part(self):
        return next(self.place.parent.glob(".model.*.pulling/.pith-part-*"))


class Good(Pull):
    def test_chosen(self):
        done = self.pull()
        self.assertEqual(done.stdout, f"{self.place}\n")
        self.assertEqual(self.there(), TAKEN)
        pin = json.loads((self.place / ".pith-pull.json").read_text())
        self.assertEqual((pin["repository"], pin["commit"], set(pin["files"])), ("org/model", COMMIT, TAKEN))
        for name, file in pin["files"].items():
            data = self.hub.files[name]
            self.assertEqual(file, {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()})
        self.assertEqual([p.name for p in self.place.parent.iterdir() if p.name != "model"], [".model.lock"])

    def test_again(self):
        self.pull()
        self.asked()
        self.pull(says="0 files")
        self.assertEqual(len(self.asked()), 1)  # the list only
        (self.place / "vocab.txt").unlink()
        self.pull(says="1 files")
        self.assertEqual(self.there(), TAKEN)
        weights = bytearray(self.hub.files["model.safetensors"])
        weights[5] ^= 1
        (self.place / "model.safetensors").write_bytes(weights)
        self.pull(says="0 files")
        self.pull("--verify-files", says="1 files")
        self.assertEqual(self.there(), TAKEN)

    def test_choices(self):
        self.pull("--files", "*.md", "--files", "config.json", says="no weights")
        self.assertEqual(self.there(), {"README.md", "config.json", "1_Pooling/config.json"})
        self.pull()
        self.assertEqual(self.there(), TAKEN | {"README.md"})
        self.pull("--all")
        self.assertEqual(self.there(), set(self.hub.files))

    def test_best_weights(self):
        for files, best in (({"onnx/model.onnx": b"x", "onnx/model.onnx_data": b"y", "onnx/model_fp16.onnx": b"z"},
                             {"onnx/model.onnx", "onnx/model.onnx_data"}),
                            ({"model-00001-of-00002.safetensors": b"1", "model-00002-of-00002.safetensors": b"2",
                              "model.safetensors.index.json": b"{}", "pytorch_model.bin": b"3"},
                             {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"}),
                            ({"model_optimized.onnx": b"x", "onnx/model_q.onnx": b"y"}, {"model_optimized.onnx"})):
            with self.subTest(best):
                self.hub.files = {"config.json": b"{}", **files}
                self.pull()
                self.assertEqual(self.there(), {"config.json"} | best)
                subprocess.run(["rm", "-r", self.place], check=True)

    def test_update(self):
        self.pull()
        self.hub.files["config.json"], self.hub.commit = b'{"b": 2}', "f" * 40
        self.hub.files.pop("vocab.txt")
        self.pull(code=1, says="no revision " + COMMIT)  # the pinned one, which this hub has forgotten
        self.asked()
        self.pull("--update", says="files")
        self.assertFalse([path for path in self.asked() if path.endswith("model.safetensors") and "2_" not in path])
        self.assertEqual(self.there(), TAKEN - {"vocab.txt"})
        self.pull(name="org/model@v1", says="0 files")

    def test_found_by_name(self):
        for name, data in {p.name: p.read_bytes() for p in (SOURCE / "tests/data/models/bert-base-script17-eager").iterdir()
                           if p.is_file()}.items():
            self.hub.files[name] = data
        self.hub.files = {k: v for k, v in self.hub.files.items() if k.endswith(".onnx") and "/" not in k}
        missing = pith("inspect", "org/model", env=self.env)
        self.assertEqual(missing.returncode, 1)
        self.assertIn("'pith pull org/model'", missing.stderr)
        self.pull()
        self.assertEqual(pith("inspect", "org/model", env=self.env).returncode, 0)

    def test_listed_name(self):
        self.hub.repository = "intfloat/e5-small-v2"
        self.pull(name="e5-small-v2", says="e5-small-v2 is intfloat/e5-small-v2")
        self.assertTrue((self.dir / "cache/models/e5-small-v2/model.safetensors").exists())

    def test_pooling(self):
        self.hub.repository = "Qdrant/bge-small-en-v1.5-onnx-Q"
        self.assertNotIn("--pooling", self.pull(name=self.hub.repository).stderr)
        self.hub.files.pop("modules.json")
        self.hub.commit = "e" * 40
        self.pull("--update", name=self.hub.repository, says="--pooling cls")

    def test_json(self):
        out = json.loads(self.pull("--json").stdout)
        self.assertEqual((out["path"], out["commit"], out["files_fetched"]), (str(self.place), COMMIT, len(TAKEN)))
        self.assertEqual(out["bytes_fetched"], sum(len(self.hub.files[name]) for name in TAKEN))

    def test_environment(self):
        done = subprocess.run([PITH, "pull", "org/model"], capture_output=True, text=True,
                              env={**self.env, "HF_ENDPOINT": self.hub.url + "/", "HF_TOKEN": "hf_abc"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(all(headers.get("Authorization") == "Bearer hf_abc" for _, headers in self.hub.requests))
        self.assertEqual(self.there(), TAKEN)

    def test_proxy(self):
        self.pull("--endpoint", "http://hub.invalid", env={"http_proxy": self.hub.url, "no_proxy": ""})
        self.assertTrue(all(path.startswith("http://hub.invalid/") for path in self.asked()))
        self.assertEqual(self.there(), TAKEN)

    def test_offline(self):
        for how in ([["--offline"], {}], [[], {"HF_HUB_OFFLINE": "1"}]):
            self.fails(("org/model", "network"), *how[0], env=how[1])
        self.assertEqual(self.asked(), [])
        self.pull()
        self.assertEqual(self.pull("--offline").stdout, f"{self.place}\n")

    def test_other_cache(self):
        snapshot = self.dir / "hf/hub/models--org--model/snapshots/abc"
        snapshot.mkdir(parents=True)
        (snapshot / "model.onnx").write_bytes((SOURCE / "tests/data/models/bert-base-script17-eager/model.onnx").read_bytes())
        for env in ({"HF_HOME": str(self.dir / "hf")}, {"HF_HUB_CACHE": str(self.dir / "hf/hub")}):
            self.assertEqual(self.pull(env=env).stdout, f"{snapshot}\n")
            self.assertEqual(pith("inspect", "org/model", env={**self.env, **env}).returncode, 0)
        self.assertEqual(self.asked(), [])
        self.assertFalse(self.place.exists())

    def test_two_at_once(self):
        results = []
        threads = [threading.Thread(target=lambda: results.append(self.pull())) for _ in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual([r.returncode for r in results], [0, 0])
        self.assertEqual(self.there(), TAKEN)
        self.assertEqual(sum(path.endswith("/model.safetensors") for path in self.asked()), 2)  # and 2_Dense's: each once

    def test_usage(self):
        for name in ("", "../x", "a/b/c", "/etc", "a b", "org/..", "org/", "org/model@", "-x"):
            with self.subTest(name):
                self.pull(name=name, code=2)
        self.pull("--all", "--files", "x", code=2)
        done = subprocess.run([PITH, "pull", "org/model", "--endpoint", "file:///etc"], capture_output=True, env=self.env)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(self.asked(), [])

    def test_not_pulled(self):
        self.place.mkdir(parents=True)
        self.pull(code=1, says="was not pulled")


class Cached(Pull):
    """Models in the caches of this machine."""

    BERT = SOURCE / "tests/data/models/bert-base-script17-eager/model.onnx"

    def put(self, name, repository=None, cache="cache/models"):
        """A model of that name in the cache, pulled from a repository or put there by hand."""
        folder = self.dir / cache / name
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(self.BERT.read_bytes())
        if repository:
            (folder / ".pith-pull.json").write_text(json.dumps({"repository": repository, "commit": COMMIT, "files": {}}))
        return folder

    def found(self, name, env={}):
        """The path that a name means; None: there is no such model."""
        done = pith("inspect", name, "--json", env={**self.env, **env})
        return Path(json.loads(done.stdout)["path"]) if done.returncode == 0 else done.stderr

    def check(self, there, *names, **keywords):
        for name in names:
            with self.subTest(name):
                found = self.found(name, **keywords)
                self.assertIsInstance(found, Path, found)
                self.assertTrue(found.is_relative_to(there), found)

    def missing(self, *names, says=()):
        for name in names:
            with self.subTest(name):
                found = self.found(name)
                self.assertIsInstance(found, str)
                for part in (says,) if isinstance(says, str) else says:
                    self.assertIn(part, found)
        return found


class Names(Cached):
    """A model is found under every name it has, and not fetched a second time."""

    def test_put_there_by_hand(self):
        self.check(self.put("all-MiniLM-L6-v2"), "all-MiniLM-L6-v2", "ALL-minilm-l6-V2", "sentence-transformers/all-MiniLM-L6-v2",
                   "Sentence-Transformers/ALL-MINILM-L6-V2", "minilm", "MiniLM", "all-minilm")
        self.missing("Xenova/all-MiniLM-L6-v2", "sentence-transformers", "minil", "a/b/minilm", says="no model '")

    def test_with_organisation(self):
        self.check(self.put("BAAI/bge-small-en-v1.5"), "BAAI/bge-small-en-v1.5", "bge-small-en-v1.5", "BGE-Small-EN-v1.5", "bge-small")
        self.check(self.put("someone/Own-Model"), "someone/Own-Model", "own-model", "SOMEONE/own-model")
        self.missing("baai", "someone", "other/own-model", says="no model ")

    def test_pulled_without_organisation(self):
        there = self.put("small-model", "someone/Small-Model")
        self.check(there, "small-model", "Small-Model", "someone/small-model")
        self.missing("other/small-model")
        self.put("unknown-model")
        self.missing("someone/unknown-model")

    def test_more_than_one(self):
        self.put("one/the-model")
        self.put("two/the-model")
        self.missing("the-model", says=("more than one model", "one/the-model", "two/the-model"))
        self.check(self.put("the-model"), "the-model")
        own = self.put("Xenova/all-MiniLM-L6-v2")
        self.missing("all-MiniLM-L6-v2")  # the table knows whose this is
        self.check(own, "xenova/all-minilm-l6-v2")

    def test_other_cache(self):
        there = self.put("hub/models--sentence-transformers--all-MiniLM-L6-v2/snapshots/abc", cache="hf")
        hub = {"HF_HUB_CACHE": str(self.dir / "hf/hub")}
        self.check(there, "sentence-transformers/all-MiniLM-L6-v2", "all-minilm-l6-v2", "minilm", env=hub)
        self.check(self.put("ALL-MiniLM-l6-v2"), "all-minilm-l6-v2", env=hub)
        self.check(there, "minilm", env=hub)  # the organisation is known

    def test_exact_name_first(self):
        self.put("Model")
        self.check(self.put("model"), "model")

    def test_not_fetched_again(self):
        self.put("all-MiniLM-L6-v2")
        for name in ("all-MiniLM-L6-v2", "minilm", "sentence-transformers/all-MiniLM-L6-v2", "ALL-MINILM-L6-V2"):
            done = self.pull(name=name, says="all-MiniLM-L6-v2 is here already")
            self.assertEqual(done.stdout, f"{self.dir / 'cache/models/all-MiniLM-L6-v2'}\n")
        self.assertEqual(self.asked(), [])
        self.pull(name="Xenova/all-MiniLM-L6-v2", code=1)
        self.assertNotEqual(self.asked(), [])

    def test_pulled_once(self):
        """Later calls complete it where it is, whatever it is called."""
        self.hub.repository = "intfloat/e5-small-v2"
        done = self.pull(name="E5-small-v2")
        self.assertEqual(done.stdout, f"{self.dir / 'cache/models/e5-small-v2'}\n")
        for name in ("intfloat/e5-small-v2", "e5-small", "Intfloat/E5-SMALL-v2"):
            again = self.pull(name=name, says="0 files")
            self.assertEqual(again.stdout, done.stdout)
        self.assertEqual(json.loads(self.pull("--json", name="e5-small").stdout)["name"], "e5-small")

    def test_short_names(self):
        rows = re.findall(r'MODEL_NAME\("([^"]*)", "([^"]*)",\s+"([^"]*)", "([^"]*)"|MODEL_NAME\("([^"]*)", "([^"]*)", "", ""\)',
                          (SOURCE / "src/models/hub/model_names.def").read_text())
        names = [(row[0] or row[4], row[1] or row[5]) for row in rows]
        self.assertGreater(len(names), 40)
        self.assertEqual(len({name for name, _ in names}), len(names), "a short name is there twice")
        for name, full in names:
            self.assertRegex(full, r"^[\w.-]+/[\w.-]+$")
            self.assertEqual(name, name.lower())

    def test_names_of_the_pages(self):
        """Each name in README.md and docs/ that a command fetches or opens comes from a hub under this name."""
        pages = [SOURCE / "README.md", *SOURCE.glob("docs/*.md")]
        named = {name for page in pages for name in re.findall(r"pith [a-z]+[^`|\n]* -m ([\w./-]+)|pith pull ([\w./-]+)", page.read_text())
                 for name in name if name}
        readers = {"MODEL", "NAME", "DIR", "my-model", "path/to/directory"}  # what stands for a model of the reader's own
        files = {name for name in named if re.search(r"^\.?/|/$|\.(pith|onnx|gguf|json)$", name)}
        known = {m["name"].lower() for m in json.loads(pith("models", "--json").stdout)["models"]}
        known |= {name.split("/")[1] for name in known}
        table = (SOURCE / "src/models/hub/model_names.def").read_text().lower()
        for name in named - readers - files:
            with self.subTest(name):
                self.assertTrue(name.lower() in known or f'"{name.lower()}"' in table or f'/{name.lower()}"' in table,
                                f"no list knows {name}")

    def serve(self, repository, folder):
        self.hub.repository = repository
        self.hub.files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        self.hub.large = {name for name in self.hub.files if name.endswith((".onnx", ".safetensors", ".bin"))}

    def test_models_of_the_readme(self):
        """Small models of the same kinds stand for them."""
        data = SOURCE / "tests/data"
        for name, repository, stored, command in (
                ("splade", "Qdrant/Splade_PP_en_v1", "encode/splade-max", ["embed", "--sparse"]),
                ("bge-reranker", "BAAI/bge-reranker-base", "tasks/cross-bert", ["rerank", "--query", "a cat"]),
                ("emotion", "bhadresh-savani/distilbert-base-uncased-emotion", "tasks/labels-bert", ["classify"]),
                ("colbert", "colbert-ir/colbertv2.0", "encode/colbert-hidden", ["embed", "--multi-vector"]),
                ("clip-vit-base-patch32", "openai/clip-vit-base-patch32", "vision/clip", ["embed"])):
            with self.subTest(name):
                self.serve(repository, data / stored)
                self.pull(name=name, says=repository)
                done = pith(*command, "-m", name, input="a cat sat\n", env=self.env)
                self.assertEqual((done.returncode, done.stdout.count("\n")), (0, 1), done.stderr)

    def test_yunet(self):
        yunet = (SOURCE / "tests/data/yunet/yunet-s-640-other-sizes/model.onnx").read_bytes()
        name = "face_detection_yunet_2023mar.onnx"
        self.hub.repository = "opencv/face_detection_yunet"
        self.hub.files = {name: yunet, "face_detection_yunet_2023mar_int8.onnx": b"other", "README.md": b"", "CMakeLists.txt": b""}
        for large in ((), (name,)):
            self.hub.large = set(large)
            done = self.pull(name="yunet", says="yunet is opencv/face_detection_yunet")
            folder = self.dir / "cache/models/opencv/face_detection_yunet"
            self.assertEqual(done.stdout, f"{folder}\n")
            self.assertEqual([p.name for p in folder.iterdir() if p.name[0] != "."], [name])
            face = SOURCE / "tests/data/faces/face_1.png"
            found = pith("detect", "-m", "yunet", face, env=self.env)
            self.assertEqual((found.returncode, "1 face" in found.stdout), (0, True), found.stderr)
            subprocess.run(["rm", "-r", folder], check=True)
        self.hub.files[name] = yunet[:-1] + b"x"
        self.pull(name="yunet", code=1, says=("another file than the one Pith knows", "yunet@main"))
        self.hub.large = set()
        self.pull(name="yunet", code=1, says="not those of the hub's list")
        self.pull(name="yunet@main")
        self.hub.files.pop(name)
        self.pull(name="yunet", code=1, says="does not list")


class Local(Cached):
    """pith list and pith remove."""

    def listed(self, *arguments, env={}):
        done = pith("list", "--json", *arguments, env={**self.env, **env})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["models"]

    def test_list(self):
        self.assertEqual(self.listed(), [])
        none = pith("list", env=self.env)
        self.assertEqual((none.returncode, none.stdout), (0, ""))
        self.assertIn("pith pull minilm", none.stderr)
        places = {"all-MiniLM-L6-v2": self.put("all-MiniLM-L6-v2"), "BAAI/bge-reranker-base": self.put("BAAI/bge-reranker-base"),
                  "own": self.put("own"), "org/cached": self.put("hub/models--org--cached/snapshots/abc", cache="hf").parent.parent}
        (self.dir / "cache/models/.own.lock").write_text("")
        (self.dir / "cache/models/.own.0123.pulling").mkdir()
        found = {m["name"]: m for m in self.listed(env={"HF_HUB_CACHE": str(self.dir / "hf/hub")})}
        self.assertEqual({name: Path(m["path"]) for name, m in found.items()}, places)
        self.assertEqual({name: m["kind"] for name, m in found.items()},
                         {"all-MiniLM-L6-v2": "dense", "BAAI/bge-reranker-base": "rerank", "own": None, "org/cached": None})
        self.assertEqual({m["cache"] for m in found.values() if m["name"] != "org/cached"}, {"pith"})
        self.assertEqual(found["org/cached"]["cache"], "huggingface")
        for m in found.values():
            self.assertEqual(set(m), {"name", "kind", "bytes", "path", "modified", "cache"})
            self.assertEqual(m["bytes"], self.BERT.stat().st_size)
            self.assertLess(abs(time.time() - datetime.datetime.fromisoformat(m["modified"]).timestamp()), 600)
        self.assertEqual([m["name"] for m in self.listed("BGE")], ["BAAI/bge-reranker-base"])
        self.assertEqual([m["name"] for m in self.listed("--kind", "rerank")], ["BAAI/bge-reranker-base"])
        table = pith("list", env=self.env).stdout.splitlines()
        self.assertEqual(len(table), 4)
        self.assertRegex(table[0], r"^name +kind +MB +when +path$")
        self.assertEqual(len({line.index("/") for line in table[1:] if "BAAI" not in line}), 1)

    def remove(self, *names, code=0, says=()):
        done = pith("remove", *names, env=self.env)
        self.assertEqual(done.returncode, code, done.stderr)
        for part in (says,) if isinstance(says, str) else says:
            self.assertIn(part, done.stdout + done.stderr)
        return done

    def test_remove(self):
        places = self.put("all-MiniLM-L6-v2"), self.put("BAAI/bge-reranker-base"), self.put("kept")
        megabytes = f"{self.BERT.stat().st_size / 1e6:.1f} MB freed"
        self.remove("minilm", says=("all-MiniLM-L6-v2", megabytes))
        self.assertEqual([p.exists() for p in places], [False, True, True])
        told = json.loads(pith("remove", "--json", "bge-reranker", env=self.env).stdout)
        self.assertEqual(told, {"removed": [{"name": "BAAI/bge-reranker-base", "path": str(places[1]), "bytes": self.BERT.stat().st_size}]})
        self.assertEqual([p.exists() for p in places], [False, False, True])
        self.remove("minilm", code=1, says=("no model 'minilm'", "pith list"))
        left = {p.name for p in (self.dir / "cache/models").rglob("*") if p.is_file() and not p.name.endswith(".lock")}
        self.assertEqual(left, {"model.onnx"})

    def test_what_is_not_removed(self):
        outside = self.put("outside", cache="elsewhere")
        for name in (str(outside), "../outside", "./outside", "~/outside", "", "a/../../outside"):
            self.remove(name, code=2)
        done = subprocess.run([PITH, "remove", "outside"], cwd=outside.parent, capture_output=True, text=True, env=self.env)
        self.assertEqual(done.returncode, 1)
        self.assertIn("not in the model cache", done.stderr)
        self.put("hf/hub/models--org--cached/snapshots/abc", cache="")
        done = pith("remove", "org/cached", env={**self.env, "HF_HUB_CACHE": str(self.dir / "hf/hub")})
        self.assertEqual(done.returncode, 1)
        self.assertIn("Hugging Face's tools", done.stderr)
        self.assertTrue((self.dir / "hf/hub/models--org--cached/snapshots/abc/model.onnx").exists())
        link = self.dir / "cache/models/linked"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(outside)
        self.remove("linked", says="a link")
        self.assertFalse(link.is_symlink())
        inside = self.put("inside")
        (inside / "deep").symlink_to(outside)
        self.remove("inside")
        self.assertTrue((outside / "model.onnx").exists())

    def test_what_another_needs(self):
        base, adapter = self.put("org/base"), self.put("adapter")
        (adapter / "adapter_config.json").write_text('{"base_model_name_or_path": "Base"}')
        self.remove("org/base", code=1, says="adapter needs org/base")
        (self.dir / "cache/models/again").symlink_to(base)
        self.remove("adapter")
        self.remove("org/base", code=1, says="again needs org/base")
        self.remove("again", "org/base")
        self.assertFalse(base.exists())


class Missing(Cached):
    def test_nearest(self):
        self.put("org/own-model")
        for name, near in (("own-modle", "org/own-model (here)"), ("bge-smal", "bge-small"), ("all-MiniLM-L6", "minilm"), ("yunett", "yunet"),
                           ("BAAI/bge-small-en-v1.6", "BAAI/bge-small-en-v1.5")):
            said = self.missing(name, says=("the nearest names are", "no model '"))
            pull = name if "/" in name else None if "own" in name else re.search("nearest names are ([^, ]*)", said).group(1)
            self.assertIn(f"'pith pull {pull}'" if pull else "'pith models'", said)
            line = next(line for line in said.splitlines() if line.startswith("the nearest"))
            self.assertIn(near, line)
            self.assertEqual(line.count(",") + line.count(" and "), 2, line)

    def test_known_names(self):
        for name in ("splade", "bge-small-en-v1.5", "BAAI/bge-m3", "YuNet"):
            said = self.missing(name, says=f"'pith pull {name}' fetches it")
            self.assertNotIn("nearest", said)


class Hostile(Pull):
    def edited(self, change, says, **keywords):
        def edit(listing):
            change(listing["siblings"], listing)
        self.hub.edit = edit
        self.fails(says, **keywords)

    def test_names(self):
        for name in ("../evil", "a/../../evil", "/etc/evil", "", ".", "a//b", "a/", "a\\b", "a\nb", "x" * 300, ".pith-pull.json", "a/./b"):
            with self.subTest(name):
                self.edited(lambda files, _: files.append({"rfilename": name, "size": 1}), "no name below", )
        self.assertFalse(list(self.dir.rglob("*evil*")))
        self.edited(lambda files, _: files.append({"rfilename": "a\0b", "size": 1}), "no JSON")
        self.edited(lambda files, _: files.append({"size": 1}), "without a name")
        self.edited(lambda files, _: files.append({"rfilename": 7}), "without a name")
        self.edited(lambda files, _: files.append("x"), "without a name")
        self.edited(lambda files, _: files.append(files[0]), "twice")

    def test_lists(self):
        self.edited(lambda files, _: files.extend({"rfilename": f"f{i}.json"} for i in range(10001)), "10000 are allowed")
        self.edited(lambda files, _: files[0].update(size="1"), "no number")
        self.edited(lambda files, _: files[0].update(size=-5), "no number")
        self.edited(lambda files, _: files[0].update(size=2**64), ("JSON", "big"))
        self.edited(lambda files, _: [f.update(size=2**63 - 1) for f in files], "absurd")
        self.edited(lambda files, _: [f["lfs"].update(sha256="../x") for f in files if "lfs" in f], "no SHA-256")
        self.edited(lambda files, l: l.update(sha="main"), "no commit")
        self.edited(lambda files, l: l.pop("siblings"), "no files")
        self.edited(lambda files, l: l.update(siblings=[]), "none of its 0 files")
        self.hub.edit = None
        for body, says in ((b"<html>", "no JSON"), (b"", "no JSON"), (b"[" * 100000, "no JSON"), (b"[]", "no commit"), (b"\xff\xfe", "no JSON")):
            self.hub.trouble["list"] = lambda h: self.hub.send(h, 200, body) or True
            self.fails(says)

    def test_endless_list(self):
        self.hub.trouble["list"] = Hub.send_endless
        self.fails("more than 64 MB")

    def test_sizes(self):
        self.hub.trouble["model.safetensors"] = lambda h: self.hub.send(h, 200, self.hub.files["model.safetensors"] + b"more") or True
        self.fails("more than the 300000 bytes")
        self.assertFalse(list(self.place.parent.glob(".model.*.pulling/.pith-part-*")))
        self.hub.trouble["model.safetensors"] = lambda h: self.hub.send(h, 200, self.hub.files["model.safetensors"][:-1]) or True
        self.fails("299999 of 300000 bytes")
        self.hub.trouble = {"config.json": lambda h: self.hub.send(h, 200, b"{") or True}
        self.fails("1 of 2 bytes")

    def test_endless_file(self):
        self.hub.trouble["config.json"] = Hub.send_endless
        self.fails("more than the 2 bytes")
        self.edited(lambda files, _: [f.pop("size") for f in files if f["rfilename"] == "config.json"], "67108864 bytes that a file without")

    def test_wrong_bytes(self):
        wrong = bytearray(self.hub.files["model.safetensors"])
        wrong[1000] ^= 4
        self.hub.trouble["model.safetensors"] = lambda h: self.hub.send_file(h, bytes(wrong)) or True
        self.fails(("SHA-256", "not those"))
        self.hub.trouble = {}
        self.pull()
        self.assertEqual(self.there(), TAKEN)

    def test_pinned(self):
        self.pull()
        before = self.place.stat().st_ino
        right = dict(self.hub.files)
        for name, data, says in (("model.safetensors", b"x" * 300_000, "another SHA-256"), ("config.json", b"{ }", "another size")):
            self.hub.files = {**right, name: data}
            self.pull(code=1, says=(says, "nothing is changed"))
        (self.place / "config.json").unlink()
        self.hub.files = {**right, "config.json": b"[]"}  # of the same size, so that only the bytes tell
        self.pull(code=1, says="other bytes")
        self.hub.files = right
        self.pull()
        self.assertEqual(self.there(), TAKEN)
        self.assertNotEqual(self.place.stat().st_ino, before)
        (self.place / ".pith-pull.json").write_text('{"files": {"../x": {}}}')
        self.pull(code=1, says="damaged")

    def test_statuses(self):
        for status, headers, says in ((401, {}, ("asks who you are", "HF_TOKEN")), (403, {}, ("accept its terms at", "/org/model")),
                                      (401, {"X-Error-Code": "GatedRepo"}, "accept its terms"), (404, {}, ("no such repository", "404")),
                                      (404, {"X-Error-Code": "RevisionNotFound"}, "no revision main"), (418, {}, "answers 418"),
                                      (429, {"Retry-After": "1000"}, "wait 1000 s"), (429, {}, "too many requests"),
                                      (500, {}, "answers 500"), (204, {}, "answers 204")):
            with self.subTest((status, headers)):
                self.hub.trouble["list"] = lambda h: self.hub.send(h, status, b"", headers) or True
                self.fails(says)
                self.assertEqual(len(self.asked()), 2 if status >= 429 and not headers else 1)
        self.hub.trouble = {"model.safetensors": lambda h: self.hub.send(h, 403, b"") or True}
        self.fails(("model.safetensors", "accept its terms"))
        self.hub.trouble = {"model.safetensors": lambda h: self.hub.send(h, 404, b"") or True}
        self.fails("though the hub lists it")

    def test_passing(self):
        for status, headers in ((429, {"Retry-After": "1"}), (503, {}), (503, {"Retry-After": "0"})):
            counts = {}

            def busy(h, name):
                counts[name] = counts.get(name, 0) + 1
                return counts[name] <= 1 and (self.hub.send(h, status, b"", headers) or True)

            self.hub.trouble = {name: lambda h, name=name: busy(h, name) for name in ("list", "model.safetensors")}
            began = time.monotonic()
            self.pull()
            if headers.get("Retry-After") == "1":
                self.assertGreater(time.monotonic() - began, 2)
            self.assertEqual(self.there(), TAKEN)
            subprocess.run(["rm", "-r", self.place], check=True)

    def test_redirects(self):
        other = self.start(self.hub.files, self.hub.large)

        def to(url):
            return lambda h: self.hub.send(h, 302, b"moved", {"Location": url}) or True

        path = f"/org/model/resolve/{COMMIT}/model.safetensors"
        self.hub.trouble["model.safetensors"] = to(other.url + path)
        self.pull("--token-file", self.token("hf_secret"))
        self.assertEqual(self.there(), TAKEN)
        self.assertNotIn("Authorization", other.requests[0][1])
        self.assertEqual({headers.get("Authorization") for _, headers in self.hub.requests}, {"Bearer hf_secret"})
        subprocess.run(["rm", "-r", self.place], check=True)
        self.hub.trouble["model.safetensors"] = to(path)
        self.fails("redirects too often")
        for url in ("file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/x"):
            self.hub.trouble["model.safetensors"] = to(url)
            self.fails("neither http nor https")
        self.hub.trouble["model.safetensors"] = lambda h: self.hub.send(h, 302, b"") or True
        self.fails("no usable address")

    def certificate(self):
        """One that signs itself, for the address of the hub."""
        files = self.dir / "certificate.pem", self.dir / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=hub of the tests",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-out", files[0], "-keyout", files[1]],
                       check=True, capture_output=True)
        return tuple(map(str, files))

    def test_https(self):
        plain, certificate = self.hub, self.certificate()
        self.hub = self.start(plain.files, plain.large, certificate=certificate)
        self.fails("certificate")
        self.fails("certificate", env={"CURL_CA_BUNDLE": str(self.dir / "missing.pem")})
        self.assertEqual(self.asked(), [])
        for variable in CERTIFICATES:
            self.pull(env={variable: certificate[0]})
            self.assertEqual(self.there(), TAKEN)
            subprocess.run(["rm", "-r", self.place], check=True)
        path = f"/org/model/resolve/{COMMIT}/model.safetensors"
        self.hub.trouble["model.safetensors"] = lambda h: self.hub.send(h, 302, b"", {"Location": plain.url + path}) or True
        self.fails("redirects from https to http", env={"SSL_CERT_FILE": certificate[0]})
        self.assertEqual(plain.requests, [])

    def token(self, text):
        (self.dir / "token").write_text(text)
        return self.dir / "token"

    def test_tokens(self):
        self.fails("no token in it", "--token-file", self.token("\n"))
        self.fails("letters, digits", "--token-file", self.token("a b"))
        self.fails("letters, digits", env={"HF_TOKEN": "a\tX: y"})
        self.fails("No such file", "--token-file", self.dir / "missing")
        self.assertEqual(self.asked(), [])

    def test_drops(self):
        """The connection ends after some bytes, many times; what came is not asked for again."""
        self.hub.trouble["model.safetensors"] = lambda h: self.hub.send_file(h, self.hub.files["model.safetensors"], 40_000) or True
        self.pull()
        self.assertEqual(self.there(), TAKEN)
        starts = [headers.get("Range") for path, headers in self.hub.requests if path.endswith(f"{COMMIT}/model.safetensors")]
        self.assertEqual(starts, [None, *(f"bytes={40_000 * i}-" for i in range(1, 8))])

    def test_ranges(self):
        weights = self.hub.files["model.safetensors"]
        for trouble in (lambda h: self.hub.send(h, 200, weights),  # the whole file, whatever was asked for
                        lambda h: self.hub.send(h, 206, weights[5:], {"Content-Range": "bytes 5-299999/300000"})
                        if h.headers.get("Range") else self.hub.send(h, 200, weights),  # another range
                        lambda h: self.hub.send(h, 416, b"") if h.headers.get("Range") else self.hub.send(h, 200, weights)):
            counts = []

            def first_drops(h):
                counts.append(1)
                self.hub.send_file(h, weights, 40_000) if len(counts) == 1 else trouble(h)
                return True

            self.hub.trouble["model.safetensors"] = first_drops
            self.pull("--attempts", 3)
            self.assertEqual(self.there(), TAKEN)
            subprocess.run(["rm", "-r", self.place], check=True)

    def test_silence(self):
        def silent(h):
            time.sleep(3)
            h.close_connection = True
            return True
        self.hub.trouble["list"] = silent
        began = time.monotonic()
        self.fails("(http://", "--timeout", 1, "--attempts", 1)
        self.assertLess(time.monotonic() - began, 8)

    def test_nobody(self):
        self.hub.close()
        self.fails(("org/model", self.hub.url))

    def test_no_library(self):
        for name in ("libcurl.so.4", "libcurl-gnutls.so.4"):
            (self.dir / name).write_text("")
        self.fails(("libcurl4", "cannot be loaded"), env={"LD_LIBRARY_PATH": str(self.dir)})

    def test_read_only(self):
        self.place.parent.mkdir(parents=True)
        if os.geteuid() == 0:  # rights do not stop root: a file in the way does
            self.place.parent.rmdir()
            self.place.parent.write_text("")
        else:
            self.place.parent.chmod(0o500)
        self.pull(code=1, says=("cannot be written", "PITH_CACHE"))

    def test_full(self):
        """A file that may not grow stands for a full disk; what came is used by the next call."""
        limit = ["bash", "-c", 'ulimit -f 100; exec "$0" "$@"', PITH, "pull", "org/model", "--endpoint", self.hub.url]
        done = subprocess.run(limit, capture_output=True, text=True, env=self.env)
        self.assertEqual(done.returncode, 1)
        self.assertIn("what has come is kept", done.stderr)
        self.assertEqual(self.part().stat().st_size, 102400)
        self.asked()
        self.pull()
        self.assertEqual(self.there(), TAKEN)
        self.assertEqual(next(h for p, h in self.hub.requests if p.endswith(f"{COMMIT}/model.safetensors"))["Range"], "bytes=102400-")

    def test_killed(self):
        """kill -9 at random moments: the model is whole or not there, and in the end it is whole."""
        chance, kills = random.Random(5), 0

        def slow(h):
            data, start = self.hub.files["model.safetensors"], 0
            if h.headers.get("Range"):
                start = int(h.headers["Range"][6:-1])
            h.send_response(206 if start else 200)
            h.send_header("Content-Length", str(len(data) - start))
            if start:
                h.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            h.end_headers()
            for i in range(start, len(data), 500):
                h.wfile.write(data[i:i + 500])
                time.sleep(0.0005)
            return True

        self.hub.trouble["model.safetensors"] = slow
        while kills < 100:
            child = subprocess.Popen([PITH, "pull", "org/model", "--endpoint", self.hub.url], env=self.env,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                child.wait(chance.uniform(0.005, 0.06))
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
                child.wait()
                kills += 1
            if self.place.exists():
                self.assertEqual(self.there(), TAKEN)
                subprocess.run(["rm", "-r", self.place], check=True)
        self.pull()
        self.assertEqual(self.there(), TAKEN)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
