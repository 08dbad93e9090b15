"""Who is measured: Pith and its peers, each as its users run it. Every one turns texts into vectors, tokenising included.

As a program: `peers.py NAME SETTINGS` loads one of them and obeys lines of JSON on standard input, so that each has a
process of its own (threads, memory) and sleeps while another is measured.
"""
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools")]


class Pith:
    """libpith.so through ctypes; source: the model's directory, an .onnx or a .pith file."""

    def __init__(self, threads, max_length, source, library, precision="f32", batch_tokens=0, options=None, **_):
        from pith_ctypes import Model
        self.model = Model(library, source, precision=precision, **options or {})
        self.settings = threads, max_length, batch_tokens

    def embed(self, texts, order):
        threads, max_length, batch_tokens = self.settings
        return self.model.embed(texts, threads, max_length=max_length, batch_tokens=batch_tokens)


class Padded:
    """What engines that run padded batches have in common: batches of 32, sorted by length or as they come."""

    def __init__(self, max_length, tokenizer):
        import tokenizers
        self.tokenizer = tokenizers.Tokenizer.from_file(tokenizer)
        self.tokenizer.enable_truncation(max_length)
        self.tokenizer.enable_padding()

    def embed(self, texts, order, batch=32):
        import numpy as np
        rows = sorted(range(len(texts)), key=lambda i: -len(texts[i])) if order == "sorted" else list(range(len(texts)))
        out = None
        for start in range(0, len(rows), batch):
            part = rows[start:start + batch]
            encoded = self.tokenizer.encode_batch([texts[i] for i in part])
            ids = np.array([e.ids for e in encoded], np.int64)
            mask = np.array([e.attention_mask for e in encoded], np.int64)
            hidden = self.run({"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})
            vectors = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            out = np.empty((len(texts), vectors.shape[1]), np.float32) if out is None else out
            out[part] = vectors
        return out


class PithSession(Padded):
    """libpith.so run as users run other engines: a session, and batches of 8 as the texts come. options: of opening."""

    def __init__(self, threads, max_length, tokenizer, file, library, options, **_):
        from pith_ctypes import Model
        super().__init__(max_length, tokenizer)
        self.model, self.threads = Model(library, file, **options), threads
        self.session = self.model.session()

    def embed(self, texts, order):
        return super().embed(texts, order, batch=8)

    def run(self, feed):
        return self.model.run_session(self.session, feed, self.threads)[0]


class OnnxRuntime(Padded):
    def __init__(self, threads, max_length, tokenizer, file, **_):
        import onnxruntime
        super().__init__(max_length, tokenizer)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        self.session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

    def run(self, feed):
        return self.session.run(None, feed)[0]


class OpenVino(Padded):
    def __init__(self, threads, max_length, tokenizer, file, precision="f32", **_):
        import openvino
        super().__init__(max_length, tokenizer)
        self.model = openvino.Core().compile_model(file, "CPU", {
            "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision})

    def run(self, feed):
        return self.model(feed)[0]


class FastEmbed:
    """Its own defaults: arrival order, batches of 256."""

    def __init__(self, threads, max_length, folder, **_):
        from fastembed import TextEmbedding
        self.model = TextEmbedding("sentence-transformers/all-MiniLM-L6-v2", threads=threads, specific_model_path=folder)
        self.model.model.tokenizer.enable_truncation(max_length)

    def embed(self, texts, order):
        import numpy as np
        return np.stack(list(self.model.embed(texts)))


class SentenceTransformers:
    """torch; sorts by length itself, batches of 32."""

    def __init__(self, threads, max_length, source, **_):
        import torch
        from sentence_transformers import SentenceTransformer
        torch.set_num_threads(threads)
        self.model = SentenceTransformer(source, device="cpu", local_files_only=True)
        self.model.max_seq_length = max_length

    def embed(self, texts, order):
        return self.model.encode(texts, show_progress_bar=False)


KINDS = {kind.__name__: kind for kind in (Pith, PithSession, OnnxRuntime, OpenVino, FastEmbed, SentenceTransformers)}
PACKAGES = {"OnnxRuntime": "onnxruntime", "OpenVino": "openvino", "FastEmbed": "fastembed",
            "SentenceTransformers": "sentence_transformers"}


def memory():
    """Resident bytes of this process: the most so far, and what of it is no file's now."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {key: int(lines[field].split()[0]) * 1024 for key, field in (("peak", "VmHWM"), ("anonymous", "RssAnon"))}


class Worker:
    """The other end: a peer in a process of its own. Raises RuntimeError with what it said if it cannot be had."""

    def __init__(self, kind, **settings):
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false",
                       "OMP_NUM_THREADS": str(settings["threads"])}
        self.process = subprocess.Popen([sys.executable, __file__, kind, json.dumps(settings)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError((self.process.stderr.read().strip() or "ended").splitlines()[-1])
        return json.loads(line)

    def ask(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def processor_time(self):
        """Seconds that its threads have run."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) * 1e-9

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.stderr.close()
        self.process.wait()


def main():
    begin = time.perf_counter()
    answers, sys.stdout = sys.stdout, sys.stderr  # what libraries print goes elsewhere
    peer, texts = KINDS[sys.argv[1]](**json.loads(sys.argv[2])), []
    print(json.dumps({"load": time.perf_counter() - begin}), file=answers, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        if "texts" in command:
            texts = command["texts"]
            answer = peer.embed(texts, command["order"]).tolist() if command.get("vectors") else []
        elif "memory" in command:
            answer = memory()
        elif "counted" in command:  # since the last time it was asked; of Pith alone
            answer = peer.model.statistics()
            peer.model.lib.pith_model_reset_statistics(peer.model.handle)
        else:
            answer = []
            for _ in range(command["calls"]):
                wall, cpu = time.perf_counter(), time.process_time()
                peer.embed(texts, command["order"])
                answer.append((time.perf_counter() - wall, time.process_time() - cpu))
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
