# The runtime without a compiler, installed: the examples are built against it as an app would do it (CMake, pkg-config),
# where no dev package of the compiler's is found; what they link, how large they are, what the libraries define; and
# they run a bundle that the command wrote.
set -eu
if [ -n "${SMG_SANITIZE:-}" ]; then
    echo "skipped: a sanitized library is not installed"
    exit 77
fi
case "$SMG_VULKAN" in
OFF | 0 | FALSE | NO)
    echo "skipped: built without Vulkan"
    exit 77
    ;;
esac
most=307200 # bytes, stripped
work="$SMG_TEST_OUTPUT/runtime"
rm -rf "$work"
mkdir -p "$work/empty" "$work/home"
fail() {
    echo "$1"
    exit 1
}
"$SMG_CMAKE" --install "$SMG_BINARY_DIR" --prefix "$work/prefix" >"$work/log"
PKG_CONFIG_LIBDIR="$work/empty" PKG_CONFIG_PATH='' "$SMG_CMAKE" -S "$SMG_SOURCE_DIR/docs/examples" -B "$work/build" \
    "-DCMAKE_PREFIX_PATH=$work/prefix" "-DCMAKE_C_COMPILER=$CC" "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror" \
    -DCMAKE_DISABLE_FIND_PACKAGE_SPIRV-Tools=ON -DCMAKE_BUILD_TYPE=Release >>"$work/log"
"$SMG_CMAKE" --build "$work/build" >>"$work/log" || { tail -n 30 "$work/log"; fail "the examples are not built"; }
library_dir=$(dirname "$(find "$work/prefix" -name libsmg-rt.a)")
export PKG_CONFIG_LIBDIR="$library_dir/pkgconfig" PKG_CONFIG_PATH=''
# shellcheck disable=SC2046
"$CC" -std=c11 "$SMG_SOURCE_DIR/docs/examples/run_bundle.c" -o "$work/with-pc" $(pkg-config --cflags --libs smg-rt)

# The shared one: by the package's target, from C++ too, and by pkg-config.
shared=$(find "$work/prefix" -name 'libsmg-rt.so' | head -n 1)
if [ -n "$shared" ]; then
    mkdir -p "$work/user"
    cat >"$work/user/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.21)
project(user C CXX)
find_package(smg 0.1 REQUIRED COMPONENTS rt)
configure_file("${EXAMPLE}" run_bundle.c COPYONLY)
file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/version.cpp"
    "#include <smg/rt.h>\n#include <smg/vulkan.h>\nint main() { return smg_version()[0] == 0; }\n")
add_executable(run_bundle "${CMAKE_CURRENT_BINARY_DIR}/run_bundle.c")
target_link_libraries(run_bundle PRIVATE smg::rt_shared)
foreach(kind IN ITEMS rt rt_shared)
    add_executable(version_${kind} "${CMAKE_CURRENT_BINARY_DIR}/version.cpp")
    target_link_libraries(version_${kind} PRIVATE smg::${kind})
endforeach()
END
    PKG_CONFIG_LIBDIR="$work/empty" PKG_CONFIG_PATH='' "$SMG_CMAKE" -S "$work/user" -B "$work/user/build" \
        "-DCMAKE_PREFIX_PATH=$work/prefix" "-DEXAMPLE=$SMG_SOURCE_DIR/docs/examples/run_bundle.c" >>"$work/log"
    "$SMG_CMAKE" --build "$work/user/build" >>"$work/log" || { tail -n 30 "$work/log"; fail "smg::rt_shared does not link"; }
    "$work/user/build/version_rt" && "$work/user/build/version_rt_shared" || fail "a program in C++ does not run"
    # shellcheck disable=SC2046
    "$CC" -std=c11 "$SMG_SOURCE_DIR/docs/examples/run_bundle.c" -o "$work/with-pc-shared" "-Wl,-rpath,$library_dir" \
        $(pkg-config --cflags --libs smg-rt-shared)
    for program in "$work/user/build/run_bundle" "$work/with-pc-shared"; do
        readelf -d "$program" | grep -q 'NEEDED.*libsmg-rt\.so\.[0-9]' || fail "$program does not need the shared library"
    done
fi

# libc, libm, threads and what loads libraries, and nothing of C++.
only_libc() {
    for library in $(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
        case "$library" in
        libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | ld-linux*) ;;
        *) fail "$1 needs $library" ;;
        esac
    done
}
small() {
    strip -o "$work/stripped" "$1"
    bytes=$(wc -c <"$work/stripped")
    echo "$(basename "$1"): $bytes bytes stripped"
    [ "$bytes" -le $most ] || fail "$1 has $bytes bytes stripped, at most $most"
}
for program in run_bundle read_bundle two_models steps ../with-pc; do
    program="$work/build/$program"
    only_libc "$program"
    small "$program"
done
if [ -n "$shared" ]; then
    only_libc "$shared"
    small "$shared"
fi

# What its headers mark SMG_API, and nothing else.
(cd "$work/prefix/include/smg" && cat rt.h device.h context.h status.h version.h vulkan.h) | tr '\n' ' ' |
    grep -oE 'SMG_API [^(;]*\(' | grep -oE 'smg_[a-z0-9_]+\($' | tr -d '(' | sort -u >"$work/public"
only_public() {
    sort -u >"$work/defined"
    diff "$work/public" "$work/defined" >"$work/diff" || { cat "$work/diff"; fail "$1: not what smg/rt.h declares"; }
}
[ "$(wc -l <"$work/public")" -gt 20 ]
nm -g --defined-only "$library_dir/libsmg-rt.a" | awk 'NF == 3 { print $3 }' | only_public libsmg-rt.a
if [ -n "$shared" ]; then
    nm -D --defined-only "$shared" | awk '{ print $3 }' | only_public libsmg-rt.so
fi
! nm -u "$library_dir/libsmg-rt.a" | grep -qE '_Z|shaderc|spv|yyjson' || fail "libsmg-rt.a refers to C++ or a compiler"

# A run, if there is a device: the same numbers as the command's; no file is written that nobody asked for.
if ! "$SMG_BINARY_DIR/smg" devices --json >"$work/devices" 2>&1; then
    [ -z "${SMG_REQUIRE_DEVICE:-}" ] || fail "there is no device"
    echo "no device: nothing was run"
    exit 0
fi
bundle="$work/tiny.smgb"
"$SMG_BINARY_DIR/smg" compile tests/models/hf-bert-tiny -o "$bundle"
run() { # what a process without caches says
    env -u SMG_CACHE_DIR -u XDG_CACHE_HOME SMG_VALIDATION=0 HOME="$work/home" "$@"
}
first=$(run "$work/build/run_bundle" "$bundle" input_ids 2 7 9 3)
echo "$first"
[ "$(run "$work/with-pc" "$bundle" input_ids 2 7 9 3)" = "$first" ] || fail "linked by pkg-config it says something else"
if [ -n "$shared" ]; then
    for program in "$work/user/build/run_bundle" "$work/with-pc-shared"; do
        [ "$(run "$program" "$bundle" input_ids 2 7 9 3)" = "$first" ] || fail "$program says something else"
    done
fi
# One behind the other on the device: by relu(x + 1) of x = 1 and once more.
printf 'graph plus\ndim n max 8\nx = input f32[n, 4]\none = fill 1 : f32[]\na = add(x, one)\ny = relu(a)\noutput y = y\n' \
    >"$work/plus.smg"
"$SMG_BINARY_DIR/smg" compile "$work/plus.smg" -o "$work/plus.smgb"
[ "$(run "$work/build/two_models" "$work/plus.smgb" "$work/plus.smgb")" = "y: 3 3 .." ] || fail "two_models says otherwise"
# On a VkDevice of the program's own.
if [ -x "$work/build/own_device" ]; then
    [ "$(run "$work/build/own_device" "$bundle" input_ids 2 7 9 3 2>"$work/frames")" = "$first" ] ||
        fail "own_device says something else: $(cat "$work/frames")"
    grep -Eq '^[1-9][0-9]* frames, the longest [0-9.]+ ms' "$work/frames" || fail "own_device drew no frames"
    cat "$work/frames"
fi
# A run that takes several frames; only the products take so long.
cat >"$work/deep.smg" <<'END'
graph deep
dim n max 256
ids = input i32[1, n]
table = constant f32[320, 512] random seed=1
w = constant f32[512, 2048] random seed=2 scale=0.1
v = constant f32[2048, 512] random seed=3 scale=0.1
rows = gather(table, ids) : f32[1, n, 512]
p = contract(rows, w) "bni,io->bno"
h = relu(p)
y = contract(h, v) "bno,oi->bni"
output y = y
END
if [ -x "$work/build/own_device" ]; then
    "$SMG_BINARY_DIR/smg" compile "$work/deep.smg" -o "$work/deep.smgb" --dim n=128
    # shellcheck disable=SC2046
    set -- $(seq 1 120)
    [ "$(run "$work/build/own_device" "$work/deep.smgb" ids "$@" 2>"$work/frames")" = \
        "$(run "$work/build/run_bundle" "$work/deep.smgb" ids "$@")" ] || fail "own_device says something else beside frames"
    cat "$work/frames"
    grep -Eq '^([4-9]|[1-9][0-9]+) frames' "$work/frames" || fail "own_device draws no frames beside a run"
fi
# From step to step, and once more from the start.
printf 'graph count\ndim n max 8\nx = input f32[n, 4]\nh = input f32[n, 4]\nsum = add(x, h)\n%s' \
    'output sum = sum
state h = sum
' >"$work/count.smg"
"$SMG_BINARY_DIR/smg" compile "$work/count.smg" -o "$work/count.smgb"
said=$(run "$work/build/steps" "$work/count.smgb" x 4)
[ "$said" = "h is sum of the step before
1 2 3 4
1 2 3 4" ] || fail "steps says: $said"
# What the full library has besides: a bundle made, the model checked and profiled; texts to vectors.
if [ -x "$work/build/make_bundle" ]; then
    said=$(SMG_VALIDATION=0 "$work/build/make_bundle" tests/models/hf-bert-tiny "$work/made.smgb" careful)
    echo "$said"
    echo "$said" | grep -q '^class careful: [0-9]* bytes' || fail "make_bundle tells no class"
    echo "$said" | grep -q '^last_hidden_state: .*passed$' || fail "make_bundle checked nothing"
    echo "$said" | grep -q '^k0: [0-9.]* us, [0-9.]* by its price$' || fail "make_bundle profiled nothing"
    [ "$(run "$work/build/run_bundle" "$work/made.smgb" input_ids 2 7 9 3 | cut -d' ' -f1-4)" = \
        "last_hidden_state by class careful:" ] || fail "what make_bundle wrote does not run"
    mkdir -p "$work/encoder/1_Pooling"
    cp tests/models/hf-bert-tiny/config.json tests/models/hf-bert-tiny/model.safetensors "$work/encoder"
    cp tests/models/minilm/modules.json tests/models/minilm/tokenizer_config.json "$work/encoder"
    cp tests/models/minilm/1_Pooling/config.json "$work/encoder/1_Pooling"
    printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' hello world >"$work/encoder/vocab.txt"
    seq -f '[unused%g]' 8 320 >>"$work/encoder/vocab.txt"
    said=$(SMG_VALIDATION=0 "$work/build/embed_texts" "$work/encoder" hello 'hello world' hello)
    echo "$said" | sed -n 1p | grep -q '^2 5 3: 1.000$' || fail "embed_texts says: $said"
    echo "$said" | sed -n 2p | grep -q '^2 5 6 3: -*0\.[0-9]*$' || fail "embed_texts says: $said"
    echo "$said" | sed -n 3p | grep -q '^2 5 3: 1.000$' || fail "embed_texts says: $said"
fi
# From Python with numpy: that of SMG_PYTHON, of the system, or of scripts/setup.sh --lint.
python=${SMG_PYTHON:-python3}
"$python" -c 'import numpy' 2>/dev/null || python="${SMG_LINT_DIR:-/usr/local/lib/smg-lint}/bin/python3"
if [ -n "$shared" ] && "$python" -c 'import numpy' 2>/dev/null; then
    said=$(run "$python" "$SMG_SOURCE_DIR/docs/examples/run_bundle.py" "$shared" "$bundle" input_ids 2 7 9 3)
    [ "$said" = "$first" ] || fail "run_bundle.py says '$said'"
    ! run "$python" "$SMG_SOURCE_DIR/docs/examples/run_bundle.py" "$shared" /nowhere.smgb input_ids 2 2>"$work/said" ||
        fail "run_bundle.py: a missing file is no failure"
    grep -q "cannot open '/nowhere.smgb'" "$work/said" || fail "run_bundle.py: $(cat "$work/said")"
else
    [ -z "$shared" ] || [ -z "${SMG_REQUIRE_LINT:-}" ] || fail "there is no numpy (scripts/setup.sh --lint)"
    echo "no shared library or no numpy: run_bundle.py was not run"
fi
run "$work/build/read_bundle" "$bundle" | grep -q '^input input_ids i32, axes: any any$' || fail "read_bundle says otherwise"
written=$(cd "$work/home" && find . -name '*smg*') # of the folder's own path nothing counts
[ -z "$written" ] || fail "files were written: $written"
! run "$work/build/run_bundle" /nowhere.smgb input_ids 2 2>"$work/said" || fail "a missing file is no failure"
grep -q "cannot open '/nowhere.smgb'" "$work/said" || fail "$(cat "$work/said")"
echo "the runtime works"
