# The command without the compiler, on its own system: looks at bundles that a whole smg made here, says what is wrong in
# one sentence, and runs them with the whole one's results, where there is a device.
#
#   command.sh WHOLE_SMG BUILD_FOLDER [EMULATOR..]
set -eu
whole=$1 build=$2
shift 2
work="$SMG_TEST_OUTPUT/command"
rm -rf "$work"
mkdir -p "$work"
fail() {
    echo "$1"
    exit 1
}
if [ ! -x "$whole" ]; then
    echo "skipped: no smg with the compiler at '$whole' (preset dev makes one)"
    exit 77
fi
tool="$build/smg"
[ -f "$tool" ] || tool="$build/smg.exe"
emulator=("$@")
smg() {
    SMG_CACHE_DIR="$work/cache there" "${emulator[@]}" "$tool" "$@"
}
export SMG_CACHE_DIR="$work/cache here"

# A name that is not of one alphabet: words and paths are UTF-8 on every system.
bundle="$work/bündel 文.smgb"
"$whole" compile tests/graphs/softmax_gemm.smg -o "$bundle" --target careful --dim rows=5

same() { # the same words to both
    "$whole" "$@" >"$work/here"
    smg "$@" >"$work/there" || fail "smg $*: exit status $?"
    cmp "$work/here" "$work/there" || fail "smg $*: says something else"
}
same --version
same info "$bundle"
same info "$bundle" --json

refused() { # sentence, words...
    local sentence=$1 status=0
    shift
    smg "$@" >"$work/out" 2>"$work/said" || status=$?
    [ "$status" -eq 2 ] || fail "smg $*: exit status $status"
    grep -qF "smg: $sentence" "$work/said" || fail "smg $*: $(cat "$work/said")"
    [ ! -s "$work/out" ] || fail "smg $*: writes results"
}
needs='needs the compiler, and this smg was built without it: it runs bundles'
refused "smg compile $needs" compile tests/graphs/softmax_gemm.smg -o "$work/no.smgb"
refused "smg explain $needs" explain tests/graphs/softmax_gemm.smg
refused "a MODEL that is no bundle $needs" run tests/graphs/softmax_gemm.smg
refused "a MODEL that is no bundle $needs" info tests/graphs
refused "one MODEL is needed, 0 were given" run
refused "cannot open '$work/ä'" run "$work/ä"
refused "there is no command 'dance'" dance
head -c 300 "$bundle" >"$work/cut.smgb"
refused "'$work/cut.smgb' is a damaged bundle" info "$work/cut.smgb"

if ! smg devices --json >"$work/devices" 2>"$work/said"; then
    echo "no device: nothing was run ($(cat "$work/said"))"
    [ -z "${SMG_REQUIRE_RUNTIME_DEVICE:-}" ] || exit 1
    exit 0
fi
grep '"name"' "$work/devices"
"$whole" run "$bundle" --seed 3 --output "y=$work/here.npy" >"$work/here"
smg run "$bundle" --seed 3 --output "y=$work/there.npy" >"$work/there"
cat "$work/there"
[ -n "$(ls -A "$work/cache there")" ] || fail "nothing was kept in the cache folder"
python3 - "$work/here.npy" "$work/there.npy" <<'COMPARE'
import struct
import sys

def numbers(path):
    with open(path, "rb") as file:
        data = file.read()
    start = 10 + struct.unpack_from("<H", data, 8)[0]
    return data[10:start], struct.unpack_from(f"<{(len(data) - start) // 4}f", data, start)

(head, here), (other, there) = map(numbers, sys.argv[1:])
off = max(abs(a - b) for a, b in zip(here, there))
print(f"{len(here)} numbers, at most {off:g} apart, {'the same bits' if here == there else 'other bits'}")
sys.exit(head != other or not here or off > 1e-5 * max(map(abs, here)))
COMPARE
