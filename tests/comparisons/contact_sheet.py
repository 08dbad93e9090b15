#!/usr/bin/env python3
"""The contact sheet of pith crop in a browser: every picture is drawn, every link leads to a file, and the page fits a
screen and a phone.

usage: contact_sheet.py PITH [--screenshot FILE.png]; needs chromium-headless-shell (tools/setup.sh images).
"""
import argparse
import functools
import http.server
import json
import re
import shutil
import subprocess
import tempfile
import threading
import urllib.parse
import urllib.request
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data"
MODEL = DATA / "yunet/yunet-s-640-other-sizes"
NAMES = ("plain.jpg", "two words.jpg", "a&b <i>'\"x\".jpg", "50%#1?.jpg", "Gr\u00fc\u00dfe \u732b.jpg")

# Answers in the page's title, which --dump-dom prints.
SCRIPT = """<script>addEventListener('load', async () => {
  const images = [...document.images];
  images.forEach(i => i.loading = 'eager');
  await Promise.all(images.map(i => i.complete || new Promise(done => i.onload = i.onerror = done)));
  document.title = JSON.stringify({
    drawn: images.filter(i => i.naturalWidth > 0 && i.clientWidth > 0 && i.clientHeight > 0).length, images: images.length,
    links: [...document.links].map(a => a.href), figures: document.querySelectorAll('figure').length,
    captions: [...document.querySelectorAll('figcaption')].map(c => c.innerText), tags: document.querySelectorAll('i').length,
    width: document.documentElement.scrollWidth, screen: innerWidth, headings: [...document.querySelectorAll('h1')].map(h => h.innerText)});
})</script>"""


class Pages(http.server.SimpleHTTPRequestHandler):
    """Files of a folder; pages get the script."""

    def do_GET(self):
        if not self.path.endswith(".html"):
            return super().do_GET()
        page = (Path(self.directory) / urllib.parse.unquote(self.path.lstrip("/"))).read_text().replace("</body>", SCRIPT + "</body>").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_):
        pass


def browse(url, width, screenshot=None):
    """What the script says of a page in a window of this width."""
    command = ["chromium-headless-shell", "--no-sandbox", "--disable-gpu", f"--window-size={width},900", "--virtual-time-budget=20000"]
    if screenshot:
        subprocess.run([*command, f"--screenshot={screenshot}", url], check=True, capture_output=True, timeout=120)
    page = subprocess.run([*command, "--dump-dom", url], check=True, capture_output=True, text=True, timeout=120).stdout
    title = re.search("<title>(.*?)</title>", page, re.S)
    return json.loads(title[1].replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))


def pictures(folder):
    """Faces under names that a page must escape, one in a folder of its own, and a picture without a face."""
    folder.mkdir()
    for name in NAMES:
        shutil.copy(DATA / "faces/face_1.jpg", folder / name)
    (folder / "sub").mkdir()
    shutil.copy(DATA / "faces/face_2.png", folder / "sub/face.png")
    (folder / "none.ppm").write_bytes(b"P6 64 64 255\n" + bytes(64 * 64 * 3))


def check(folder, port, width, screenshot):
    says = browse(f"http://127.0.0.1:{port}/sheets/sheet.html", width, screenshot)
    crops = len(NAMES) + 1
    assert says["headings"] == [f"{crops} crops", "1 left out"], says["headings"]
    # A browser cannot draw the picture that was left out, a .ppm.
    assert (says["drawn"], says["images"], says["figures"]) == (crops, crops + 1, crops + 1), says
    assert says["tags"] == 0 and says["width"] <= says["screen"], says
    for name in NAMES:
        assert any(f"in/{name}" in caption for caption in says["captions"]), (name, says["captions"])
    # Two links to each crop's files, and one to what was left out.
    assert len(says["links"]) == 2 * crops + 1, says["links"]
    for link in says["links"]:
        with urllib.request.urlopen(link) as answer:
            assert answer.status == 200 and answer.read(2) in (b"\xff\xd8", b"\x89P", b"P6"), link
    print(f"{width} pixels wide: {says['drawn']} crops drawn, {len(says['links'])} links lead to files")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pith", type=Path)
    parser.add_argument("--screenshot", help="a PNG file of the page to look at")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pictures(folder / "in")
        (folder / "sheets").mkdir()
        subprocess.run([a.pith.resolve(), "crop", "-m", MODEL, "-o", "out", "in", "--contact-sheet", "sheets/sheet.html"], cwd=folder, check=True, capture_output=True)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Pages, directory=folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for width in (1280, 500):
            check(folder, server.server_port, width, a.screenshot if width == 1280 else None)
        server.shutdown()


if __name__ == "__main__":
    main()
