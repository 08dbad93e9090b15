#!/usr/bin/env python3
"""Writes src/base/unicode/character_*.c from utf8proc 2.8 (Unicode 15), whose shared library must be installed.

usage: make_characters.py SOURCE_DIR, then make fmt
The tables are what utf8proc says of every code point, in a form that takes a quarter of its bytes and that a linker can take in parts.
tests/unit/base/unicode/test_character.c compares both.
"""
import ctypes
import sys
import textwrap
from pathlib import Path

ALL, BLOCK, ROW = 0x110000, 16, 32  # ROW: blocks in an entry of the first table
STABLE, COMPAT, COMPOSE, DECOMPOSE = 2, 4, 8, 16  # options of utf8proc
DECOMPOSES, COMPOSES, LOWERS, UPPERS, DIFFERS = 1, 2, 4, 8, 16  # of pith__character.facts


class Property(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int16) for name in ("category", "combining", "bidi", "kind")] + [
        (name, ctypes.c_uint16) for name in ("decomposed", "folded", "upper", "lower", "title", "composed")] + [
        ("bits", ctypes.c_uint8), ("boundary", ctypes.c_uint8)]


def load():
    library = ctypes.CDLL("libutf8proc.so.2")
    library.utf8proc_get_property.restype = ctypes.POINTER(Property)
    library.utf8proc_version.restype = ctypes.c_char_p
    library.utf8proc_normalize_utf32.restype = ctypes.c_ssize_t
    library.utf8proc_normalize_utf32.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int]
    assert library.utf8proc_version() == b"2.8.0", library.utf8proc_version()
    return library


def facts(library, c):
    p = library.utf8proc_get_property(c)[0]
    bits = DECOMPOSES * (p.decomposed != 0xFFFF) | COMPOSES * (p.composed != 0xFFFF)
    if p.decomposed != 0xFFFF:
        bits |= DIFFERS * (decompose(library, c, DECOMPOSE) != decompose(library, c, DECOMPOSE | COMPAT))
    bits |= LOWERS * (library.utf8proc_tolower(c) != c) | UPPERS * (library.utf8proc_toupper(c) != c)
    return p.category, p.combining, p.boundary, bits


def decompose(library, c, options):
    out, boundary = (ctypes.c_int32 * 18)(), ctypes.c_int(0)
    return tuple(out[:library.utf8proc_decompose_char(c, out, 18, options, ctypes.byref(boundary))])


def forms(library, rows):
    """Full decompositions, but for Hangul: canonical ones, and the others where they differ."""
    canonical, other = {}, {}
    for c in range(ALL):
        if 0xAC00 <= c < 0xD7A4 or not rows[c][3] & DECOMPOSES:
            continue
        plain, wide = (decompose(library, c, options) for options in (DECOMPOSE, DECOMPOSE | COMPAT))
        if plain != (c,):
            canonical[c] = plain
        if wide != plain:
            other[c] = wide
    return canonical, other


def pairs(library, rows):
    may = [c for c in range(ALL) if rows[c][3] & COMPOSES]
    pair = (ctypes.c_int32 * 3)()
    for a in may:
        for b in may:
            pair[0], pair[1] = a, b
            if library.utf8proc_normalize_utf32(pair, 2, COMPOSE | STABLE) == 1:
                yield a, b, pair[0]


def runs(changes):
    """[first, last, distance, step] of characters that change by the same distance."""
    found = []
    for c, to in changes:
        run = found[-1] if found else None
        step = c - run[1] if run else 0
        if run and run[2] == to - c and (step == run[3] or (run[3] == 0 and step in (1, 2))):
            run[1], run[3] = c, step
        else:
            found.append([c, c, to - c, 0])
    return [(first, last, distance, step or 1) for first, last, distance, step in found]


def shared(items, size):
    """The different rows of `size` items, and which row each is."""
    known, order = {}, []
    for at in range(0, len(items), size):
        order.append(known.setdefault(tuple(items[at:at + size]), len(known)))
    return [item for row in known for item in row], order


def array(declaration, items):
    return f"{declaration} = {{\n    " + ", ".join(str(item) for item in items) + ",\n};\n"


def write(folder, name, title, body):
    title = "\n * ".join(textwrap.wrap(f"{name} - {title}", 97))
    (folder / name).write_text(f"/* {title}\n *\n * Written by tools/make_characters.py. */\n#include \"base/unicode/character.h\"\n\n" + body)


def write_forms(folder, what, title, table):
    keys, starts, units = [], [0], []
    for c, to in sorted(table.items()):
        text = "".join(map(chr, to)).encode("utf-16-le")
        keys.append(c)
        units += [hex(int.from_bytes(text[i:i + 2], "little")) for i in range(0, len(text), 2)]
        starts.append(len(units))
    planes = [sum(c >> 16 < plane for c in keys) for plane in range(4)]
    assert len(units) < 0x10000 and max(keys) < 0x30000
    write(folder, f"character_{what}_units.c", f"the characters of {title}", array(f"const uint16_t pith__character_{what}_units[]", units))
    write(folder, f"character_{what}.c", title,
          array("static const uint16_t keys[]", [hex(c & 0xFFFF) for c in keys]) + "\n" + array("static const uint16_t starts[]", starts)
          + f"\nconst pith__character_forms pith__character_{what} = {{ {{ {', '.join(map(str, planes))} }}, keys, starts,\n"
          f"pith__character_{what}_units }};\n")


def write_cases(folder, what, changes):
    rows = [f"{{ {first:#x}, {last:#x}, {distance}, {step} }}" for first, last, distance, step in runs(changes)]
    write(folder, f"character_{what}.c", f"characters whose {what} case is another one.",
          array("static const pith__character_run runs[]", rows)
          + f"\nconst pith__character_runs pith__character_{what}_runs = {{ runs, sizeof runs / sizeof runs[0] }};\n")


def main():
    folder, library = Path(sys.argv[1]) / "src/base/unicode", load()
    rows = [facts(library, c) for c in range(ALL)]
    kinds = sorted(set(rows))
    assert len(kinds) <= 256, len(kinds)
    number = {kind: i for i, kind in enumerate(kinds)}
    blocks, order = shared([number[row] for row in rows], BLOCK)
    middle, top = shared(order, ROW)
    assert max(middle) < 0x10000 and max(top) < 256
    write(folder, "character_blocks.c", "the kind of each character, in blocks of 16.", array("const uint8_t pith__character_blocks[]", blocks))
    write(folder, "character_kinds.c", "where the block of each character is, and what its kind says.",
          array("const uint8_t pith__character_top[]", top) + "\n" + array("const uint16_t pith__character_middle[]", middle) + "\n"
          + array("const pith__character pith__character_kinds[]", [f"{{ {', '.join(map(str, kind))} }}" for kind in kinds]))
    canonical, other = forms(library, rows)
    write_forms(folder, "canonical", "canonical decompositions, without Hangul.", canonical)
    write_forms(folder, "compatible", "compatibility decompositions that differ from the canonical ones.", other)
    found = [f"{{ {a:#x}, {b:#x}, {c:#x} }}" for a, b, c in pairs(library, rows) if not 0x1100 <= a < 0x1200 and not 0xAC00 <= a < 0xD7A4]
    write(folder, "character_pairs.c", "primary composites, without Hangul.",
          array("const pith__character_pair pith__character_pairs[]", found)
          + "\nconst size_t pith__character_pair_count = sizeof pith__character_pairs / sizeof pith__character_pairs[0];\n")
    for what, change in (("lower", library.utf8proc_tolower), ("upper", library.utf8proc_toupper)):
        write_cases(folder, what, [(c, change(c)) for c in range(ALL) if change(c) != c])


if __name__ == "__main__":
    main()
