"""A mutant as mutants.c reads it."""
import struct


def packed(name, use, files):
    """use: what is done with it; files: contents by path, which ends in / for a directory and in @ for a link."""
    def string(s):
        s = s.encode("utf-8", "surrogatepass") if isinstance(s, str) else s
        return struct.pack("<I", len(s)) + s
    parts = [name, use] + [part for pair in files.items() for part in pair]
    return string(b"".join(map(string, parts)))
