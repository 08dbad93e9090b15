"""Files as trees, and trees as files, for mutants.py.

A tree is made of numbers, strings, bytes, lists and Pairs (keys with values, in order, doubled ones too). What is broken
in it stays broken in the file, and all that follows from the rest is right again: lengths, counts, offsets.
"""
import json
import struct
from json.encoder import encode_basestring_ascii as quoted


KEPT = {}  # by its id: a list that stays as it is, and what it is written as
keeping = False


def kept(write):
    """Writes only what has changed of a tree anew, once keep() has seen it."""
    def wrapped(cls, v):
        if not isinstance(v, list):
            return write(cls, v)
        if id(v) in KEPT:
            return KEPT[id(v)][1]
        out = write(cls, v)
        if keeping:
            KEPT[id(v)] = v, out
        return out
    return wrapped


def keep(form, tree):
    """Of a tree whose parts are not changed."""
    global keeping
    keeping = True
    form.write(tree)
    keeping = False


class Pairs(list):
    """[key, value] items."""


class Raw(str):
    """JSON text that is written as it is."""


class Inner(list):
    """One tree of another format."""
    def __init__(self, items, form=None):
        super().__init__(items)
        self.form = form or items.form


class Json:
    @staticmethod
    def read(data):
        return json.loads(data, object_pairs_hook=lambda pairs: Pairs(map(list, pairs)))

    @classmethod
    def write(cls, tree):
        return cls.text(tree).encode()

    @classmethod
    @kept
    def text(cls, v):
        if isinstance(v, Raw):
            return str(v)
        if isinstance(v, Pairs):
            return "{" + ",".join(quoted(k) + ":" + cls.text(x) for k, x in v) + "}"
        if isinstance(v, list):
            return "[" + ",".join(map(cls.text, v)) + "]"
        return quoted(v) if isinstance(v, str) else json.dumps(v)


class Lines:
    """Lines of words: vocab.txt, merges.txt, ranks of tiktoken."""
    @staticmethod
    def read(data):
        return [line.split(b" ") for line in data.split(b"\n")]

    @staticmethod
    def write(tree):
        return b"\n".join(b" ".join(line) if isinstance(line, list) else line for line in tree)


# ---- protobuf: keys are numbers of fields, the kind of a value is that of its class ----

class Fixed32(int):
    pass


class Fixed64(int):
    pass


class Packed(list):
    """Varints in one field."""


def varint(x):
    x &= 2**64 - 1
    out = bytearray()
    while x > 127:
        out.append(x & 127 | 128)
        x >>= 7
    return bytes(out) + bytes([x])


def read_varint(data, at):
    x = shift = 0
    while True:
        x |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return x, at


class Protobuf:
    """message: what is in the fields that are not just bytes, by number: such a table, or "packed"."""
    def __init__(self, message):
        self.message = message

    def read(self, data, message=None):
        message, tree, at = self.message if message is None else message, Pairs(), 0
        while at < len(data):
            key, at = read_varint(data, at)
            field, wire = key >> 3, key & 7
            if wire == 0:
                value, at = read_varint(data, at)
            elif wire == 1:
                value, at = Fixed64(struct.unpack_from("<Q", data, at)[0]), at + 8
            elif wire == 5:
                value, at = Fixed32(struct.unpack_from("<I", data, at)[0]), at + 4
            else:
                size, at = read_varint(data, at)
                value, at = self.inside(bytes(data[at:at + size]), message.get(field)), at + size
            tree.append([field, value])
        return tree

    def inside(self, data, what):
        if what == "packed":
            values, at = Packed(), 0
            while at < len(data):
                x, at = read_varint(data, at)
                values.append(x)
            return values
        return data if what is None else self.read(data, what)

    @classmethod
    @kept
    def write(cls, tree):
        return b"".join(cls.field(k, v) for k, v in tree)

    @classmethod
    def field(cls, key, v):
        if isinstance(v, Fixed32):
            return varint(key << 3 | 5) + struct.pack("<I", v & 2**32 - 1)
        if isinstance(v, Fixed64):
            return varint(key << 3 | 1) + struct.pack("<Q", v & 2**64 - 1)
        if isinstance(v, int):
            return varint(key << 3) + varint(v)
        if isinstance(v, Pairs):
            v = cls.write(v)
        elif isinstance(v, list):
            v = b"".join(varint(x) if isinstance(x, int) else x for x in v)
        return varint(key << 3 | 2) + varint(len(v)) + v


SENTENCEPIECE = Protobuf({1: {}, 2: {}, 3: {}, 4: {1: {}}, 5: {}})
MODEL_INFO = Protobuf({8: {}, 14: {}})  # a ModelProto without a graph: opsets and metadata are messages


def protobuf_of(descriptor, known=None):
    """The table of a message of a Python protobuf module."""
    known = {} if known is None else known
    if descriptor.full_name in known:
        return known[descriptor.full_name]
    table = known[descriptor.full_name] = {}
    for f in descriptor.fields:
        if f.type == f.TYPE_MESSAGE:
            table[f.number] = protobuf_of(f.message_type, known)
        elif f.is_repeated and f.type in (f.TYPE_INT32, f.TYPE_INT64, f.TYPE_UINT64):
            table[f.number] = "packed"
    return table


# ---- compiled models: src/formats/compiled, src/models/save/*.c, src/text/frozen_tokenizer.h ----

class U32(int):
    pass


class I64(int):
    pass


class Text(bytes):
    """Behind its size; claim: another size."""
    claim = None


class Counted(list):
    """Items behind their number; claim: another number."""
    claim = None


class Bytes:
    """Numbers and strings one behind the other."""
    @classmethod
    @kept
    def write(cls, v):
        if isinstance(v, U32):
            return struct.pack("<I", v & 2**32 - 1)
        if isinstance(v, I64):
            return struct.pack("<Q", v & 2**64 - 1)
        if isinstance(v, (Text, Counted)):
            head = cls.write(U32(len(v) if v.claim is None else v.claim))
            return head + (bytes(v) if isinstance(v, bytes) else b"".join(map(cls.write, v)))
        if isinstance(v, bytes):
            return v
        if isinstance(v, Inner):
            return v.form.write(v[0])
        return b"".join(cls.write(x[1] if isinstance(v, Pairs) else x) for x in v)


class Reader:
    """Reads what is written in graph_write.c and saved_*.c, part by part."""
    def __init__(self, data):
        self.data, self.at = data, 0

    def bytes(self, size):
        self.at += size
        assert self.at <= len(self.data)
        return self.data[self.at - size:self.at]

    def u32(self):
        return U32(struct.unpack("<I", self.bytes(4))[0])

    def i64(self):
        return I64(struct.unpack("<q", self.bytes(8))[0])

    def text(self):
        return Text(self.bytes(self.u32()))

    def counted(self, read):
        return Counted(read() for _ in range(self.u32()))

    def record(self, *readers):
        return [read() for read in readers]

    def end(self, tree):
        assert self.at == len(self.data), "the reader of compiled models in trees.py is not that of src/formats/compiled"
        return tree

    # types and tensors

    def dim(self):
        kind = self.u32()
        return [kind] + ([self.i64()] if kind == 1 else [self.text()] if kind == 2 else [])

    def type(self):
        head = self.record(self.u32, self.u32, self.u32)
        return head + [self.dim() for _ in range(head[2] - 1)]

    def tensor(self):
        dtype, rank = self.u32(), self.u32()
        dims = [self.i64() for _ in range(rank)]
        count = 1
        for d in dims:
            count *= d
        if dtype == 8:
            rest = [self.text() for _ in range(count)]
        elif dtype == 32:
            rest = [self.tensor() for _ in range(count)]
        else:
            rest = [] if dtype == 33 else [self.u32()]
        return [dtype, rank, dims, rest]

    # graphs

    def value(self):
        kind, name = self.u32(), self.text()
        rest = []
        if kind == VALUE_KINDS["PACKED"]:
            rest = self.type()
        elif kind == VALUE_KINDS["CONST"]:
            rest = self.tensor()
        elif kind == VALUE_KINDS["INPUT"]:
            rest = [self.type(), self.u32()]
            rest += [self.tensor()] if rest[1] & 1 else []
        return [kind, name, rest]

    def attribute(self):
        name, kind = self.text(), self.u32()
        one = {1: lambda: self.bytes(4), 2: self.i64, 3: self.text, 4: self.tensor, 5: self.graph, 13: self.type}
        many = {6: lambda: self.bytes(4), 7: self.i64, 8: self.text, 9: self.tensor}
        return [name, kind, one[kind]() if kind in one else self.counted(many[kind])]

    def node(self):
        head = self.record(self.text, self.text, self.text, self.u32, self.u32)
        head += [self.counted(self.u32), self.counted(self.u32), self.u32(), self.counted(self.attribute)]
        return head + [self.counted(lambda: self.record(self.text, self.u32))]

    def graph(self):
        return [self.text(), self.counted(self.value), self.counted(self.node),
                self.counted(lambda: self.record(self.u32, self.text))]

    def whole_graph(self):
        head = self.record(self.text, self.i64) + [self.counted(lambda: self.record(self.text, self.i64))]
        return self.end(head + [self.graph()])

    # the section "model"

    def port(self):
        head = self.record(self.text, self.text, self.u32, self.u32, self.u32, self.u32)
        return head + [[self.i64() for _ in range(head[5] - 1)]]

    def model(self):
        modules = self.record(*[self.u32] * 16)
        modules += [self.counted(lambda: self.record(self.u32, self.u32, self.text)) for _ in range(2)]
        modules += self.record(self.u32, self.u32) + self.record(self.text, self.u32, self.text, self.text)
        modules += [self.counted(lambda: self.record(self.text, self.text))]
        modules += [self.counted(lambda: self.record(self.text, self.text)), self.text()]
        modules += [self.counted(lambda: self.record(*[self.u32] * 6, *[self.text] * 3)),
                    self.counted(lambda: self.record(self.text, self.text, self.text))]
        labels = self.record(self.u32, self.u32, self.u32) + [self.counted(self.text)]
        late = self.record(self.text, self.u32, self.text, self.u32, self.u32, self.u32)
        late += self.record(self.u32, self.text, self.u32, self.u32) + [self.counted(self.u32), self.counted(self.text)]
        how = self.record(*[self.u32] * 4) + self.record(self.text, self.u32, self.text)
        ports = [self.counted(self.port), self.counted(self.port)]
        report = [self.counted(lambda: self.record(self.text, self.text, self.u32)),
                  self.counted(lambda: self.record(self.u32, self.text, self.text))]
        return self.end([modules, labels, late, how, ports, report])

    def heads(self):
        return [self.counted(self.u32), self.whole_graph()]

    def words(self):
        kind, stops = self.u32(), self.counted(self.text)
        if kind != 2:
            return self.end([kind, stops])
        words, stems = self.counted(self.text), self.counted(lambda: self.record(self.text, self.text))
        return self.end([kind, stops, words, stems, self.record(self.u32, self.i64, self.i64, self.i64, self.u32)])

    def pictures(self):
        code, reason = self.u32(), self.text()
        if code:
            return self.end([code, reason])
        name, sizes = self.text(), self.record(*[self.u32] * 8)
        numbers = [self.bytes(8), self.bytes(8), *[self.bytes(4) for _ in range(6)]]
        return self.end([code, reason, name, sizes, numbers, self.u32(), self.u32()])

    def routes(self):
        return self.end(self.counted(lambda: self.record(self.text, self.u32)))

    def weights(self):
        count = self.i64()
        rows = [self.record(self.i64, self.i64) for _ in range(count)]
        return [count, rows, self.data[self.at:]]


VALUE_KINDS = {"INPUT": 0, "CAPTURE": 1, "CONST": 2, "NODE": 3, "PACKED": 4}


class Sections:
    """Named sections behind a table: a compiled model, or a frozen tokenizer. The name of a section of a compiled model
    is its kind, and above 32 bits its route."""
    HEAD = {b"\x89PITH\r\n\x1a": (48, "<IIQQQ"), b"PithTok\0": (24, "<16sQQ")}

    def __init__(self, data):
        """The head as it was; where sections begin is found anew."""
        self.size, self.entry = self.HEAD[data[:8]]
        self.head, self.frozen = data[:self.size], self.size == 24
        count = struct.unpack_from("<I", data, 12)[0]
        self.count = 16 if self.frozen else count
        self.sections = []
        for i in range(count):
            row = struct.unpack_from(self.entry, data, self.size + 32 * i)
            name, begin, size = row if self.frozen else (row[0] | row[1] << 32, row[2], row[3])
            self.sections.append([name, data[begin:begin + size]])

    def write(self, tree):
        """tree: Pairs of names and contents, which are bytes or Inner."""
        table, body, at = b"", b"", self.size + 32 * max(self.count, len(tree))
        for name, contents in tree:
            contents = Bytes.write(contents)
            alignment = 4096 if name == 4 else 64
            begin = -(-(at + len(body)) // alignment) * alignment
            body += bytes(begin - at - len(body)) + contents
            table += (struct.pack(self.entry, name, begin, len(contents)) if self.frozen
                      else struct.pack(self.entry, name & 2**32 - 1, name >> 32 & 2**32 - 1, begin, len(contents), 0))
        if self.frozen:
            body += bytes(-(at + len(body)) % 64)
        table = table.ljust(at - self.size, b"\0")
        head = bytearray(self.head)
        struct.pack_into("<I", head, 12, len(tree))
        struct.pack_into("<Q", head, 16, at + len(body))
        return bytes(head) + table + body


def words(data, size):
    """Numbers of four bytes, then the rest."""
    whole = min(size, len(data)) // 4 * 4
    return [U32(x) for x in struct.unpack(f"<{whole // 4}I", data[:whole])] + [data[whole:]]


def table_of(data):
    """Header and table as numbers, everything else as it is."""
    return words(data, 48 + 32 * struct.unpack_from("<I", data, 12)[0])


def frozen_of(data):
    form = Sections(data)
    return Inner([Pairs([name, Inner([Json.read(part)], Json) if name.startswith(b"settings") else words(part, len(part))]
                        for name, part in form.sections)], form)


def compiled_trees(data):
    """The trees of a compiled model: its table; its sections; the table of the tokenizer in it."""
    form = Sections(data)
    readers = {1: Reader.model, 2: Reader.whole_graph, 3: Reader.whole_graph, 4: Reader.weights, 6: Reader.heads,
               7: Reader.words, 8: Reader.pictures, 9: Reader.routes}
    sections = Pairs()
    for name, part in form.sections:
        kind = name & 2**32 - 1
        whole = {5: frozen_of, 11: lambda data: Inner([MODEL_INFO.read(data)], MODEL_INFO)}.get(kind)
        sections.append([name, whole(part) if whole else readers[kind](Reader(part))])
    yield Bytes, table_of(data)
    yield form, sections
    for i, (kind, part) in enumerate(form.sections):
        if kind & 2**32 - 1 == 5:
            rest = Pairs(form.sections)
            rest[i] = [kind, table_of(part)]
            yield form, rest


# ---- safetensors: length, JSON, data ----

class Safetensors:
    @staticmethod
    def read(data):
        size = struct.unpack_from("<Q", data)[0]
        return [I64(0), Inner([Json.read(data[8:8 + size])], Json), data[8 + size:]]

    @staticmethod
    def write(tree):
        """The first number is added to the right length."""
        more, header, data = (list(tree) + [b""] * 3)[:3]
        header = Bytes.write(header)
        more = more if isinstance(more, int) else 0
        return struct.pack("<Q", len(header) + more & 2**64 - 1) + header + Bytes.write(data)


