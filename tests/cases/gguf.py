"""GGUF files that llama.cpp's converter made of small random models (tests/makers/make_gguf_models.py): ids and vectors as
transformers 4.57 has them from the folders that the files were made of, and of NomicBERT as transformers 5.24 has them.

  python tests/cases/gguf.py PITH SOURCE"""
import json
import math
import struct
import sys
import unittest

from command import SOURCE, Command

MODELS = SOURCE / "tests/data/gguf/models"
STRING, UINT32, FLOAT32, BOOL = 8, 4, 6, 7


def pack(kind, value):
    """A setting's value as the file has it."""
    if kind == STRING:
        return struct.pack("<IQ", kind, len(value.encode())) + value.encode()
    return struct.pack("<I" + {UINT32: "I", FLOAT32: "f", BOOL: "?"}[kind], kind, value)


class Gguf(Command):
    verb = "embed"

    def rows_of(self, verb, file, texts, *options):
        result = self.run_pith("-m", file, "-0", *options, verb=verb, stdin=b"".join(text.encode() + b"\0" for text in texts))
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        if file.parent.name == "bge-m3-json":  # which the converter of September 2026 writes so
            self.assertIn("'tokenizer.ggml.add_space_prefix' is false", result.stderr.decode())
        else:
            self.assertEqual(result.stderr, b"")
        return [json.loads(line) for line in result.stdout.splitlines()]

    def with_settings(self, name, *settings, drop=()):
        """A copy with further settings; those in drop get another name."""
        data = bytearray((MODELS / name / "model.gguf").read_bytes())
        for key in drop:
            at = data.index(key.encode())
            data[at:at + len(key)] = ("general." + "x" * (len(key) - 8)).encode()
        count, = struct.unpack_from("<Q", data, 16)
        more = b"".join(struct.pack("<Q", len(key)) + key.encode() + pack(kind, value) for key, kind, value in settings)
        # Tensors follow the settings at a multiple of 32: a last setting fills up.
        fill = -(len(more) + 8 + 12 + 4 + 8) % 32
        more += struct.pack("<Q", 12) + b"general.fill" + struct.pack("<IQ", STRING, fill) + b"." * fill
        struct.pack_into("<Q", data, 16, count + len(settings) + 1)
        file = self.dir / "model.gguf"
        file.write_bytes(bytes(data[:24]) + more + bytes(data[24:]))
        return file


class Values(Gguf):
    """Each folder of tests/data/gguf/models."""

    def test_ids(self):
        for folder in sorted(MODELS.iterdir()):
            right = json.loads((folder / "values.json").read_text())
            with self.subTest(folder.name):
                self.assertEqual(self.rows_of("tokenize", folder / "model.gguf", right["texts"]), right["ids"])

    def test_vectors(self):
        for folder in sorted(MODELS.iterdir()):
            right = json.loads((folder / "values.json").read_text())
            rows = self.rows_of("embed", folder / "model.gguf", right["texts"])
            for row, vector, text in zip(rows, right["vectors"], right["texts"], strict=True):
                with self.subTest(folder.name, text=text):
                    cosine = sum(x * y for x, y in zip(row, vector, strict=True)) / math.hypot(*row) / math.hypot(*vector)
                    self.assertLessEqual(1 - cosine, 1e-6)
                    self.assertAlmostEqual(math.hypot(*row), 1, delta=1e-5)


class Settings(Gguf):
    """What the file says is read, known to change nothing, refused or warned of."""

    def says(self, file, code):
        result = self.run_pith("-m", file, verb="embed", stdin=b"a\n")
        self.assertEqual(result.returncode != 0, bool(code), result.stderr.decode())
        return result.stderr.decode()

    def test_lists(self):
        lists = {d["what"]: d["value"] for d in json.loads(self.run_pith(MODELS / "qwen3/model.gguf", "--json", verb="inspect").stdout)["decisions"]}
        self.assertIn("qwen3.rope.freq_base", lists["settings read"].split(", "))
        self.assertIn("general.name", lists["settings ignored"].split(", "))
        self.assertIn("tokenizer.ggml.pre", lists["tokenizer settings read"].split(", "))
        self.assertIn("tokenizer.ggml.eot_token_id", lists["tokenizer settings ignored"].split(", "))
        self.assertNotIn("settings not known", lists)

    def test_unknown(self):
        said = self.says(self.with_settings("qwen3", ("qwen3.attention.novelty", UINT32, 1)), 0)
        self.assertIn("'qwen3.attention.novelty' is not known and is ignored", said)
        said = self.says(self.with_settings("qwen3", ("tokenizer.ggml.novelty", UINT32, 1)), 0)
        self.assertIn("'tokenizer.ggml.novelty' is not known", said)

    def test_refused(self):
        for key, kind, value, words in (("qwen3.expert_count", UINT32, 8, "'qwen3.expert_count' is set"),
                                        ("qwen3.attention.scale", FLOAT32, 0.5, "'qwen3.attention.scale' is set"),
                                        ("qwen3.rope.scaling.type", STRING, "longrope", "'qwen3.rope.scaling.type' is none of"),
                                        ("qwen3.rope.dimension_count", UINT32, 8, "'qwen3.rope.dimension_count' differs"),
                                        ("qwen3.attention.value_length", UINT32, 8, "'qwen3.attention.value_length' differs"),
                                        ("qwen3.pooling_type", UINT32, 4, "qwen3.pooling_type 4"),
                                        ("general.type", STRING, "adapter", "general.type is 'adapter'"),
                                        ("split.count", UINT32, 3, "one of 3 parts")):
            with self.subTest(key):
                # The first of two settings with one name is the file's own: it must give way.
                file = self.with_settings("qwen3", (key, kind, value), drop=[key] if key in ("qwen3.pooling_type", "qwen3.attention.value_length", "general.type") else [])
                self.assertIn(words, self.says(file, 1))

    def test_refused_tokenizer(self):
        for key, value, words in (("tokenizer.ggml.pre", "tekken", "'tokenizer.ggml.pre' is 'tekken'; known are gpt-2, "),
                                  ("tokenizer.ggml.model", "rwkv", "a tokenizer of the kind 'rwkv'; known are bert, t5, gpt2 and llama")):
            said = self.says(self.with_settings("qwen3", (key, STRING, value), drop=[key]), 1)
            self.assertIn(words, said)

    def test_pooling(self):
        """A file that names no pooling: the mean, and a warning."""
        file = self.with_settings("qwen2", drop=["qwen2.pooling_type"])
        self.assertIn("'qwen2.pooling_type' names no pooling; the mean", self.says(file, 0))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
