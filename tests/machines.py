#!/usr/bin/env python3
"""Runs the tests whose results could depend on the machine on other machines than this one, without building anything.

usage: machines.py BUILD [--jobs N] [--whole] [--only TEXT] [--list]
--whole: every test of `make test`, not only those with the label `machine`, and all of these. --only: machines with TEXT in
their names.
A machine that cannot be played here is named with the reason. $PITH_PYTHON is a Python with tests/requirements.txt.
"""
import argparse
import ctypes
import fcntl
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve()
SOURCE = HERE.parents[1]
NOBODY = 65534
# What the tests of a copied build need none of: objects, and builds that other tests made.
LEFT_OUT = re.compile(r"CMakeFiles$|Testing$|\.(o|ninja|log)$|/tests/(test_\w+|install|extending|subproject|select_\w+)$")
# These have the paths of data and build compiled in, so a copy of the build would test nothing of its place.
COMPILED_PATHS = "^(test_|cpp|far$|far_devices$|many_threads)"


# Tests of the files with the label `machine` that take half of their time, and ask nothing of the machine that others do not.
LONG_ONES = """Models.test_calibrate Models.test_precision Models.test_bench Embed.test_memory_limit Interrupted.test_kills
Interrupted.test_slow_model Objects.test_large Queries.test_cost Windows.test_beyond_the_data LongTexts.test_resume LongTexts.test_mean
LongTexts.test_rows LongTexts.test_more_chunks_than_a_call Types.test_types Types.test_resume Effects.test_memory_prediction
Presets.test_each Tables.test_export OfOneCommand.test_tokens_of_bench OfOneCommand.test_chunks_of_bench
Effects.test_profile_of_bench"""

# Tests that take most of the time: each only on the machines that could change it. --whole runs them on all.
ONLY_ON = {
    "pulls": ("no network", "a service"),
    "options": ("16 processors", "locale tr_TR"),
    "pages": ("locale tr_TR", "umask 077"),
    "cases_tables": ("1 processor", "locale de_DE"),
    "mishaps": ("a private folder", "a service"),
    "outputs": ("umask 000", "umask 077"),
    "cli": ("1 processor", "locale tr_TR", "a path with blanks", "an empty HOME"),
}


class NotHere(Exception):
    """Why this machine cannot be played."""


def cache():
    given = os.environ.get("PITH_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pith"


def link_tree(source, target, owner=None, leave_out=lambda path: False):
    """A copy of a folder which shares its files with it where the file system can; folders are new."""
    target.mkdir(parents=True)
    if owner is not None:
        os.chown(target, owner, owner)
    for entry in os.scandir(source):
        path = Path(entry.path)
        if leave_out(path):
            continue
        if entry.is_dir(follow_symlinks=False):
            link_tree(path, target / entry.name, owner, leave_out)
        elif entry.is_symlink():
            os.symlink(os.readlink(path), target / entry.name)
        elif entry.is_file():
            try:
                os.link(path, target / entry.name)
            except OSError:
                shutil.copy2(path, target / entry.name)


def copied(build, folder, owner=None):
    """A copy of the tree and of what is built, whose tests have the new paths. Returns the build of the copy."""
    tree = folder / "pith"
    link_tree(SOURCE, tree, owner, lambda path: path.parent == SOURCE and re.match(r"build|\.git$", path.name))
    made = tree / "build-test"
    link_tree(build, made, owner, lambda path: LEFT_OUT.search(str(path)))
    for listed in (made / "CTestTestfile.cmake", made / "tests/CTestTestfile.cmake"):
        text = listed.read_text().replace(f'"{build}', f'"{made}').replace(f'"{SOURCE}', f'"{tree}')
        listed.unlink()  # the file is the build's own too
        listed.write_text(text)
    return made


def without_network(command):
    """Becomes the command, with no network but the loopback interface."""
    libc, user = ctypes.CDLL(None, use_errno=True), os.getuid()
    CLONE_NEWUSER, CLONE_NEWNET, SIOCSIFFLAGS, IFF_UP_RUNNING = 0x10000000, 0x40000000, 0x8914, 0x41
    if libc.unshare(CLONE_NEWNET) and libc.unshare(CLONE_NEWUSER | CLONE_NEWNET):
        sys.exit(f"the network cannot be taken away: {os.strerror(ctypes.get_errno())}")
    if user:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{os.getgid()} {os.getgid()} 1")):
            Path(f"/proc/self/{name}").write_text(text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP_RUNNING))
    os.execvp(command[0], command)


class Machine:
    """How ctest is started: its environment, what is put in front of it, where, and which tests it leaves out."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.environment, self.keywords, self.prefix, self.leave_out = dict(os.environ), {}, [], None
        self.jobs = None


def processors(count):
    def play(machine):
        here = sorted(os.sched_getaffinity(0))
        if count <= len(here):
            machine.keywords["preexec_fn"] = lambda: os.sched_setaffinity(0, here[:count])
            machine.jobs = min(count, len(here))
            return
        library = machine.folder / "processors.so"
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", HERE.parent / "machines/processors.c", "-o", library, "-ldl"],
                       check=True)
        machine.environment.update(LD_PRELOAD=str(library), PLAYED_PROCESSORS=str(count))
    return play


def variable(**values):
    return lambda machine: machine.environment.update(values)


def locale(name):
    def play(machine):
        if not shutil.which("localedef") or not Path("/usr/share/i18n/locales", name).exists():
            raise NotHere("Debian's package locales is not installed")
        subprocess.run(["localedef", "-i", name, "-f", "UTF-8", machine.folder / f"{name}.UTF-8"], check=True)
        machine.environment.update(LOCPATH=str(machine.folder), LC_ALL=f"{name}.UTF-8", LANG=f"{name}.UTF-8", LANGUAGE=name[:2])
    return play


def umask(mask):
    return lambda machine: machine.keywords.update(umask=mask)


def path_with_blanks(machine):
    machine.build = copied(machine.build, machine.folder / "a folder's näme (1) & more")
    machine.leave_out = COMPILED_PATHS


def private_folder(machine):
    folder = machine.folder / "private"
    folder.mkdir(mode=0o700)
    machine.build = copied(machine.build, folder)
    machine.leave_out = COMPILED_PATHS


def no_network(machine):
    machine.prefix = [sys.executable, HERE, "--without-network"]
    tried = subprocess.run([*machine.prefix, "true"], capture_output=True, text=True)
    if tried.returncode:
        raise NotHere(tried.stderr.strip().splitlines()[-1])


def empty_home(machine):
    """The model stays where it is: otherwise the tests would have nothing to run."""
    (machine.folder / "home").mkdir()
    machine.environment.update(HOME=str(machine.folder / "home"), PITH_CACHE=str(cache()))
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        machine.environment.pop(name, None)


def service(machine):
    """As something starts it that is no login: no home directory, no terminal, signals of terminals ignored."""
    empty_home(machine)
    for name in ("HOME", "USER", "LOGNAME", "TERM", "LANG"):
        machine.environment.pop(name, None)
    machine.keywords.update(stdin=subprocess.DEVNULL, start_new_session=True, restore_signals=False,
                            preexec_fn=lambda: [signal.signal(s, signal.SIG_IGN) for s in (signal.SIGHUP, signal.SIGINT)])


def ordinary_user(machine):
    if os.getuid():
        raise NotHere("the tests run as an ordinary user already")
    machine.folder.chmod(0o755)
    machine.build = copied(machine.build, machine.folder / "owned", NOBODY)
    os.chown(machine.folder / "owned", NOBODY, NOBODY)
    link_tree(cache() / "models", machine.folder / "cache/models", NOBODY)
    python = Path(os.environ["PITH_PYTHON"]).parents[1]
    link_tree(python, machine.folder / "python", NOBODY)
    for name in ("home", "temporary"):
        (machine.folder / name).mkdir()
        os.chown(machine.folder / name, NOBODY, NOBODY)
    machine.environment.update(HOME=str(machine.folder / "home"), PITH_CACHE=str(machine.folder / "cache"), USER="nobody", LOGNAME="nobody",
                               TMPDIR=str(machine.folder / "temporary"), PITH_PYTHON=str(machine.folder / "python/bin/python"))
    machine.keywords.update(user=NOBODY, group=NOBODY, extra_groups=[])
    try:
        subprocess.run([machine.environment["PITH_PYTHON"], "-c", ""], env=machine.environment, check=True, capture_output=True,
                       **machine.keywords)
    except (OSError, subprocess.CalledProcessError):
        raise NotHere("the Python that the environment of the tests was made with is in a folder that only root may enter")
    machine.leave_out = COMPILED_PATHS


MACHINES = {
    "1 processor": processors(1),
    "3 processors": processors(3),
    "4 processors": processors(4),
    "16 processors": processors(16),
    "no AVX-512": variable(PITH_ISA="avx2"),
    "locale de_DE": locale("de_DE"),
    "locale tr_TR": locale("tr_TR"),
    "umask 077": umask(0o077),
    "umask 000": umask(0),
    "a path with blanks": path_with_blanks,
    "a private folder": private_folder,
    "no network": no_network,
    "an empty HOME": empty_home,
    "a service": service,
    "an ordinary user": ordinary_user,
}


def run(name, play, build, arguments):
    """Whether the tests passed."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pith-machine-") as folder:
        machine = Machine(build, Path(folder))
        try:
            play(machine)
        except NotHere as why:
            print(f"machines: {name}: not played: {why}", flush=True)
            return True
        chosen = ["-LE", "^(long|build|apart|references|relational|select)$"]
        if not arguments.whole:
            machine.environment["PITH_TEST_LEAVE_OUT"] = " ".join(LONG_ONES.split())
            chosen = ["-L", "^machine$", "-LE", "^(long|references)$"]
        left_out = [machine.leave_out] if machine.leave_out else []
        if not arguments.whole:
            left_out += [f"^{test}$" for test, machines in ONLY_ON.items() if name not in machines]
        if left_out:
            chosen += ["-E", "|".join(left_out)]
        done = subprocess.run([*machine.prefix, "ctest", "--test-dir", machine.build, "--output-on-failure", "--no-tests=error",
                               "-j", str(machine.jobs or arguments.jobs), *chosen], env=machine.environment, text=True,
                              errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **machine.keywords)
    summary = re.search(r"\d+ tests failed out of \d+", done.stdout)
    if done.returncode:
        print(done.stdout)
    print(f"machines: {name}: {summary[0] if summary else 'no result'}, {time.monotonic() - began:.0f} s", flush=True)
    return done.returncode == 0


def main():
    if sys.argv[1:2] == ["--without-network"]:
        without_network(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    if "PITH_PYTHON" not in os.environ:
        sys.exit("machines: set PITH_PYTHON to what tools/test_python.sh prints")
    chosen = {name: play for name, play in MACHINES.items() if arguments.only in name}
    if arguments.list or not chosen:
        print("\n".join(MACHINES))
        return int(not chosen)
    failed = [name for name, play in chosen.items() if not run(name, play, arguments.build.resolve(), arguments)]
    if failed:
        print(f"machines: tests failed on: {', '.join(failed)}")
    return len(failed) > 0


if __name__ == "__main__":
    sys.exit(main())
