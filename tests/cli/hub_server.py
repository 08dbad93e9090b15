"""A hub for tests, in the layout of Hugging Face, that can misbehave in the ways that `trouble` names."""
import hashlib
import json
import random
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """files: name -> bytes. large: the names in large file storage. trouble: name of a file or "list" -> function(handler)
    that answers instead and returns True, or returns False for the usual answer. certificate: (its file, its key's file);
    the hub then speaks https."""

    def __init__(self, files, large=(), repository="org/model", certificate=None):
        self.files, self.large, self.repository, self.trouble = dict(files), set(large), repository, {}
        self.commit, self.requests, self.edit, self.ranges = COMMIT, [], None, True
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                hub.requests.append((self.path, dict(self.headers)))
                try:
                    hub.answer(self)
                except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
                    self.close_connection = True

        class Server(ThreadingHTTPServer):
            daemon_threads, request_queue_size = True, 50

            def handle_error(self, request, address):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def listing(self):
        files = []
        for name, data in self.files.items():
            one = {"rfilename": name, "size": len(data), "blobId": hashlib.sha1(data).hexdigest()}
            if name in self.large:
                one["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
            files.append(one)
        listing = {"id": self.repository, "sha": self.commit, "siblings": files}
        if self.edit:
            self.edit(listing)
        return json.dumps(listing).encode()

    def answer(self, h):
        path = unquote(urlsplit(h.path).path)
        api, resolve = f"/api/models/{self.repository}/revision/", f"/{self.repository}/resolve/{self.commit}/"
        name = "list" if path.startswith(api) else path[len(resolve):] if path.startswith(resolve) else path
        if name in self.trouble and self.trouble[name](h):
            return
        if name == "list":
            if path[len(api):] not in ("main", "v1", self.commit):
                return self.send(h, 404, b"", {"X-Error-Code": "RevisionNotFound"})
            return self.send(h, 200, self.listing())
        if name not in self.files:
            return self.send(h, 404, b"", {"X-Error-Code": "EntryNotFound"})
        self.send_file(h, self.files[name])

    def send(self, h, status, body, headers={}):
        h.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **headers}.items():
            h.send_header(key, value)
        h.end_headers()
        h.wfile.write(body)

    def send_file(self, h, data, cut=None):
        """cut: the connection ends after so many bytes."""
        start, headers, status = 0, {"X-Repo-Commit": self.commit}, 200
        if self.ranges and h.headers.get("Range"):
            start = int(h.headers["Range"].split("=")[1].split("-")[0])
            if start >= len(data):
                return self.send(h, 416, b"", {"Content-Range": f"bytes */{len(data)}"})
            status, headers["Content-Range"] = 206, f"bytes {start}-{len(data) - 1}/{len(data)}"
        body = data[start:]
        headers["Content-Length"] = str(len(body))
        self.send(h, status, body[:cut], headers)
        if cut is not None and cut < len(body):
            h.wfile.flush()
            h.connection.shutdown(2)
            h.close_connection = True

    @staticmethod
    def send_endless(h):
        """70 MB of spaces without a length."""
        h.send_response(200)
        h.send_header("Connection", "close")
        h.end_headers()
        for _ in range(70):
            h.wfile.write(b" " * 2**20)
        h.close_connection = True
        return True


def model(seed=1, size=300_000):
    """Files of a repository that pull chooses from; the weights are noise."""
    noise = random.Random(seed).randbytes
    return {"config.json": b"{}", "modules.json": b"[]", "1_Pooling/config.json": b"{}", "tokenizer.json": b'{"a": 1}', "vocab.txt": b"a\nb\n",
            "README.md": b"# Model", "model.safetensors": noise(size), "pytorch_model.bin": noise(50),
            "2_Dense/model.safetensors": noise(1000), "onnx/model_fp16.onnx": noise(70), "empty.txt": b""}
