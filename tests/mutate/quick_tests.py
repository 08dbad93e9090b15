"""The quick tests of a build tree: what they are, and running them with a program that was linked apart."""
import dataclasses
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEMORY, FILE_SIZE = 16 << 30, 4 << 30
# They do not take what was linked apart.
LEFT_OUT = {"onnx_dirs", "mutants"}
# The folder of the build is an argument, and this is what they load from it.
LOADED = {"compare_tokenizers": "tests/libtext_probe.so", "compare_random": "tests/libtext_probe.so"}


@dataclasses.dataclass
class Test:
    name: str
    command: list
    environment: list
    needs: list  # programs and libraries, from the folder of the build
    seconds: float = 0


@dataclasses.dataclass
class Build:
    folder: pathlib.Path
    commands: list  # of compile_commands.json


def build(folder, *flags):
    """Builds the library and the tests in a folder. What the tests find there is made as well."""
    run = lambda *words: subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    run("cmake", "-G", "Ninja", "-S", str(ROOT), "-B", str(folder), "-DPITH_TESTS=ON", *flags)
    run("cmake", "--build", str(folder), "-j", os.environ.get("JOBS", "1"))
    run("ctest", "--test-dir", str(folder), "-R", "^onnx_dirs$")
    return Build(folder, json.loads((folder / "compile_commands.json").read_text()))


def quick_tests(made):
    shown = subprocess.run(["ctest", "--test-dir", str(made.folder), "--show-only=json-v1"], check=True, capture_output=True)
    tests = []
    for entry in json.loads(shown.stdout)["tests"]:
        properties = {p["name"]: p["value"] for p in entry["properties"]}
        if {"long", "build", "apart"} & set(properties.get("LABELS", [])) or entry["name"] in LEFT_OUT:
            continue
        named = re.findall(re.escape(str(made.folder)) + r"/([\w./-]+)", " ".join(entry["command"]))
        needs = [n for n in named if (made.folder / n).is_file()] + [LOADED[n] for n in [entry["name"]] if n in LOADED]
        tests.append(Test(entry["name"], entry["command"], properties.get("ENVIRONMENT", []), needs))
    return tests


def limits():
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE, FILE_SIZE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Runner:
    """Runs the tests of a build with programs that lie in another folder, under the same names."""

    def __init__(self, base, folder):
        self.base, self.folder, self.links = base, folder, {}

    def link(self, artefact, made, source):
        """Links a program or library of the build into this folder with one object in the place of the library's."""
        if artefact not in self.links:
            shown = subprocess.run(["ninja", "-t", "commands", artefact], cwd=self.base.folder, check=True,
                                   capture_output=True, text=True)
            self.links[artefact] = shown.stdout.splitlines()[-1]
        command = self.links[artefact].replace(f" -o {artefact} ", f" -o {self.folder / artefact} ")
        within = next((w for w in command.split() if w.endswith(f"/{source.relative_to(ROOT)}.o")), None)
        command = command.replace(within, str(made)) if within else command.replace(" libpith.a ", f" {made} libpith.a ")
        done = subprocess.run(["sh", "-c", command], cwd=self.base.folder, capture_output=True, text=True)
        return done.returncode == 0

    def run(self, test, seconds):
        """What went wrong in a few words, or an empty string."""
        words = [w.replace(str(self.base.folder), str(self.folder)) for w in test.command]
        environment = os.environ | dict(e.split("=", 1) for e in test.environment)
        process = subprocess.Popen(words, cwd=self.folder / "tests", env=environment, preexec_fn=limits,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            status = process.wait(seconds)
            return "" if status == 0 else f"signal {-status}" if status < 0 else f"exit {status}"
        except subprocess.TimeoutExpired:
            return "time"
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
