"""ONNX files by hand, field by field of their protobuf: what tests need and no more."""
import struct

F32, I64 = 1, 7


def varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def value(name, kind, *dims):
    shape = b"".join(field(1, field(1, d) if isinstance(d, int) else field(2, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def node(op, name, inputs, outputs, domain=""):
    lists = b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs)
    return lists + field(3, name) + field(4, op) + (field(7, domain) if domain else b"")


def floats(name, dims, values):
    return (b"".join(field(1, d) for d in dims) + field(2, F32) + field(8, name)
            + field(9, struct.pack(f"<{len(values)}f", *values)))


def document(inputs, outputs, nodes, weights=(), opset=18):
    graph = b"".join([field(1, n) for n in nodes] + [field(2, "g")] + [field(5, w) for w in weights]
                     + [field(11, i) for i in inputs] + [field(12, o) for o in outputs])
    return field(1, 8) + field(8, field(2, opset)) + field(7, graph)
