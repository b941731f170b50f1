#!/usr/bin/env bash
# Everything a change must pass: packages, gcc build with most tests, sanitizers on unit, fault, model and fuzz tests,
# the thread sanitizer on threads that share a model and on some that share nothing, clang, the compiler without Vulkan,
# the runtime as it is released, and for other systems. Goes on after a failure and says at the end what failed; the last line
# counts the tests.
#
#   scripts/test.sh            all of it (what CI runs)
#   scripts/test.sh --quick    only the gcc build and its tests
#   scripts/test.sh -R <name>  only tests whose name matches, gcc build
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

quick=no
selection=()
case "${1:-}" in
    --quick) quick=yes ;;
    -R) quick=yes selection=(-R "${2:?a name}") ;;
    "") ;;
    *) echo "usage: scripts/test.sh [--quick | -R name]" >&2; exit 2 ;;
esac

jobs="$(nproc 2>/dev/null || echo 2)"
logs="$(mktemp -d)"
trap 'rm -rf "$logs"' EXIT
failures=()
passed=0
total=0

# Runs kernels on the CPU driver, the same on every machine; a test that finds no device must fail
# here instead of being skipped.
lavapipe=(/usr/share/vulkan/icd.d/lvp_icd*.json)
if [ -z "${VK_DRIVER_FILES:-}" ] && [ -f "${lavapipe[0]}" ]; then
    export VK_DRIVER_FILES="${lavapipe[0]}"
fi
# Drivers keep compiled shaders: everybody waits as long as a newcomer does.
export MESA_SHADER_CACHE_DIR="$logs/driver"
export SMG_REQUIRE_DEVICE="${SMG_REQUIRE_DEVICE:-1}"
export SMG_REQUIRE_LINT="${SMG_REQUIRE_LINT:-1}" # the same for a test that finds no clang-format or clang-tidy

# Tests write below the build folder only; compared at the end.
sources() {
    git status --porcelain --untracked-files=all 2>/dev/null || true
}
sources_before="$(sources)"

unchanged() {
    [ "$(sources)" = "$sources_before" ] || { diff <(echo "$sources_before") <(sources); return 1; }
}

stage() { # name, command...
    local name="$1" start=$SECONDS
    shift
    printf '== %s\n' "$name"
    if "$@"; then
        printf '== %s: ok, %d s\n' "$name" $((SECONDS - start))
    else
        printf '== %s: FAILED, %d s\n' "$name" $((SECONDS - start))
        failures+=("$name")
        return 1
    fi
}

build() { # preset, options of the configuration...
    cmake --preset "$1" "${@:2}" >"$logs/configure" || { cat "$logs/configure"; return 1; }
    cmake --build --preset "$1" --parallel "$jobs" -- -k 0 >"$logs/build" 2>&1 || {
        grep -v '^\[' "$logs/build" | tail -n 200
        return 1
    }
}

tests() { # preset, ctest options...
    local preset="$1" result counts
    shift
    "${wrap[@]}" ctest --preset "$preset" --parallel "$jobs" "$@" | tee "$logs/tests"
    result=${PIPESTATUS[0]}
    counts="$(sed -n 's/^[0-9]*% tests passed, \([0-9]*\) tests\{0,1\} failed out of \([0-9]*\)$/\1 \2/p' "$logs/tests")"
    if [ -n "$counts" ]; then
        total=$((total + ${counts#* }))
        passed=$((passed + ${counts#* } - ${counts% *}))
    fi
    return "$result"
}

# Builds two tests and what they link.
watch_threads() {
    local wrap=()
    cmake --preset tsan >"$logs/configure" || { cat "$logs/configure"; return 1; }
    cmake --build --preset tsan --parallel "$jobs" --target test_threads test_threads_shared >"$logs/build" 2>&1 || {
        grep -v '^\[' "$logs/build" | tail -n 200
        return 1
    }
    # Some kernels place memory where older run times of the sanitizer do not expect it.
    setarch -R true 2>/dev/null && wrap=(setarch -R)
    tests tsan -R '^model.threads'
}

# The runtime for another system; its tests, where something here runs its programs.
build_for() { # preset
    local wrap=()
    build "$1" || return 1
    if grep -q '^SMG_\(QEMU\|WINE\):FILEPATH=/' "build/$1/CMakeCache.txt"; then
        tests "$1"
    else
        echo "built and linked, nothing was run: nothing here runs programs of that system"
    fi
}

# What users get of the runtime is optimised for size in part (tests/meta/runtime.sh measures that of preset dev). All else
# is built and warned about as the stage with gcc does it, at the level of releases.
build_runtime() {
    local bytes most
    scripts/build.sh --target smg_rt_shared >"$logs/build" 2>&1 || { tail -n 200 "$logs/build"; return 1; }
    most="$(sed -n 's/^most=\([0-9]*\) .*/\1/p' tests/meta/runtime.sh)"
    strip -o "$logs/runtime" build/release/libsmg-rt.so && bytes="$(wc -c <"$logs/runtime")" || return 1
    echo "libsmg-rt.so: $bytes bytes stripped, at most $most"
    [ "$bytes" -le "$most" ]
}

# Not with sanitizers: what these do with memory model.bert, model.api, model.onnx, fault.memory, unit.plan_cache,
# unit.matrices, unit.matrices_device, unit.tuning and the fuzz corpora do too, in a tenth of the time. Threads are the
# thread sanitizer's.
too_long='unit.every_schedule|unit.plan$|unit.plan_bound|_wide$|model.range|model.precision_device|fault.caches|model.hf|model.lengths|model.onnx_.*device|unit.subgraphs|model.threads|fuzz.random|unit.glsl$|unit.glsl_halves|unit.repeat_device|unit.blocks_device|unit.tuning_parts'

# What has the same cases with sanitizers, which see what is lost, too, and takes long: not without them as well.
# (fault.memory, fault.variants_memory and fault.command take fewer cases there.)
sanitized='^(fault\.(device_calls|embed|matrices|tune_lost|tune_wrong)|model\.replan|unit\.(tuning|plan_cache|rates))$'
once=()
[ "$quick" = yes ] || once=(-E "$sanitized")

stage "packages" scripts/setup.sh --lint
# Pure code of the folders below vulkan/ is compiled alike with and without it: not again. All warnings of clang come
# before it optimises, and tests of a few seconds need less of it.
same_without='unit.every_schedule|unit.matri|unit.glsl|unit.subgraphs|unit.onnx_|unit.repeat|unit.limits|unit.layout|unit.affine|unit.moves|unit.tuning_parts|unit.rewrite|fault.memory$|unit.plan|unit.kernel|golden.models|golden.fusion|golden.code|golden.bundles|meta.format|meta.tidy|meta.lint|meta.output|meta.rules'

stage "build with gcc" build dev -DCMAKE_C_FLAGS_DEBUG="-O3 -g1" && stage "tests" tests dev "${selection[@]}" "${once[@]}"
if [ "$quick" = no ]; then
    stage "build with sanitizers" build asan && stage "tests with sanitizers" tests asan -L "unit|fault|model|fuzz" -E "$too_long"
    stage "threads with the thread sanitizer" watch_threads
    stage "build with clang" build clang -DCMAKE_C_FLAGS_DEBUG=-O0
    stage "build without Vulkan" build no-vulkan -DCMAKE_C_FLAGS_DEBUG=-O1 && stage "tests without Vulkan" tests no-vulkan -L "unit|fault|golden|meta" -E "$same_without"
    stage "release of the runtime" build_runtime
    stage "packages for other systems" scripts/setup.sh --cross && {
        stage "runtime for Windows" build_for mingw
        stage "runtime for 64-bit ARM" build_for aarch64
    }
fi
stage "sources as before" unchanged

echo
for name in "${failures[@]}"; do printf 'FAILED: %s\n' "$name"; done
printf '%d tests passed, %d failed out of %d, %d s\n' "$passed" $((total - passed)) "$total" "$SECONDS"
[ "${#failures[@]}" -eq 0 ]
