"""The numbers that smg makes up for inputs and for constants of graph texts, made again: what `smg bench` computed can be
compared without moving its inputs. Written for arrays of 64-bit integers of NumPy or PyTorch."""
import re

MASK = (1 << 64) - 1
SEED = STEP = 0x9E3779B97F4A7C15
FACTOR = 0xC6A4A7935BD1E995
FLOAT_BITS = 52


def signed(word):
    word &= MASK
    return word - (1 << 64) if word >> 63 else word


def finish(word):
    word = ((word ^ (word >> 47)) * FACTOR) & MASK
    return word ^ (word >> 47)


def mixed(word, value):
    value = (value * FACTOR) & MASK
    value = ((value ^ (value >> 47)) * FACTOR) & MASK
    return ((word ^ value) * FACTOR) & MASK


def hash_number(seed, value):
    return finish(mixed(seed ^ ((8 * FACTOR) & MASK), value))


def hash_text(seed, text):
    data = text.encode()
    word = seed ^ ((len(data) * FACTOR) & MASK)
    while len(data) >= 8:
        word = mixed(word, int.from_bytes(data[:8], "little"))
        data = data[8:]
    if data:
        word = ((word ^ int.from_bytes(data, "little")) * FACTOR) & MASK
    return finish(word)


def shifted(word, count):
    """As if the words had no sign."""
    return (word >> count) & ((1 << (64 - count)) - 1)


def words(state, numbers):
    """The random words behind a state; numbers: 1, 2, 3, ... as 64-bit integers."""
    z = numbers * signed(STEP) + signed(state)
    z = (z ^ shifted(z, 30)) * signed(0xBF58476D1CE4E5B9)
    z = (z ^ shifted(z, 27)) * signed(0x94D049BB133111EB)
    return z ^ shifted(z, 31)


def input_words(name, numbers, seed=0):
    return words(hash_text(hash_number(SEED, seed), name), numbers)


def input_floats(name, numbers, seed=0):
    """As whole numbers of 1/1024 above -1."""
    return input_words(name, numbers, seed) & 2047


def input_integers(name, numbers, limit, seed=0):
    bits = input_words(name, numbers, seed)
    return (shifted(bits, 1) % limit * 2 + (bits & 1)) % limit


def constant_words(seed, numbers):
    """Of `random seed=N`: in 2^-52 of the scale above -scale."""
    return shifted(words(seed, numbers), 64 - FLOAT_BITS - 1)


LINE = re.compile(r"(\w+) = (input|constant) (\w+)\[([^\]]*)\](?: random seed=(\d+)(?: scale=([\d.e-]+))?)?")


def leaves(text, dims):
    """{name: (kind, type, shape, seed, scale)} of a graph text's inputs and random constants."""
    found = {}
    for name, kind, word, shape, seed, scale in LINE.findall(text):
        sides = [s.strip() for s in shape.split(",") if s.strip()]
        found[name] = (kind, word, tuple(dims[s] if s in dims else int(s) for s in sides), int(seed or 0),
                       float(scale or 1))
    return found
