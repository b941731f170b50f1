#!/usr/bin/env bash
# Fuzzes every format that smg reads (tests/fuzz/fuzz_*.c) with clang's libFuzzer, under the address and
# undefined-behaviour sanitizers, starting from tests/fuzz/corpus and from what earlier runs found.
#
#   scripts/fuzz.sh 60             60 seconds for each format
#   scripts/fuzz.sh 600 onnx npy   10 minutes for each of these
#   scripts/fuzz.sh --keep onnx    copies what earlier runs found into the corpus, as few files as cover it
#
# What is found stays in build/fuzz/found/<format> (inputs that reach new code) and build/fuzz/failed/<format> (inputs
# that crash, leak, hang or want too much memory). The exit status is 1 when there was one of those: mend it, and put the
# input into tests/fuzz/corpus/<format>, which every test run replays.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
usage() {
    sed -n '5,7p' "${BASH_SOURCE[0]}" >&2
    exit 2
}
die() {
    printf 'fuzz: %s\n' "$*" >&2
    exit 2
}

keep=no seconds=
case "${1:-}" in
--keep) keep=yes ;;
"" | *[!0-9]*) usage ;;
*) seconds=$1 ;;
esac
shift
formats=("$@")
if [ "${#formats[@]}" -eq 0 ]; then
    for source in tests/fuzz/fuzz_*.c; do
        name=${source##*/fuzz_}
        formats+=("${name%.c}")
    done
fi
for name in "${formats[@]}"; do [ -f "tests/fuzz/fuzz_$name.c" ] || die "there is no tests/fuzz/fuzz_$name.c"; done

[ -n "$(command -v clang)" ] || die "clang is not installed (scripts/setup.sh)"
echo 'int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return d && n ? 0 : 0; }' |
    clang -fsanitize=fuzzer,address -x c - -o /dev/null 2>/dev/null ||
    die "clang has no libFuzzer: install libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev (Debian)"
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --parallel "$(nproc)" --target "${formats[@]/#/fuzz_}" >build/fuzz/build.log 2>&1 || {
    grep -v '^\[' build/fuzz/build.log | tail -n 50 >&2
    die "the build failed"
}

failed=0
export ASAN_OPTIONS=allocator_may_return_null=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}
for name in "${formats[@]}"; do
    seeds=tests/fuzz/corpus/$name found=build/fuzz/found/$name bad=build/fuzz/failed/$name
    mkdir -p "$found" "$bad"
    if [ "$keep" = yes ]; then
        build/fuzz/tests/"fuzz_$name" -merge=1 "$seeds" "$found" 2>&1 | tail -n 1
        continue
    fi
    before=$(find "$bad" -type f | wc -l)
    # New inputs go into the first folder. One of at most 64 KB has five seconds and 1 GB of memory.
    status=0
    build/fuzz/tests/"fuzz_$name" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=1024 -max_len=65536 \
        -artifact_prefix="$bad/" "$found" "$seeds" >"build/fuzz/$name.log" 2>&1 || status=$?
    runs=$(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "build/fuzz/$name.log")
    after=$(find "$bad" -type f | wc -l)
    printf '%-12s %s runs, %d inputs found, %d failed\n' "$name" "${runs:-?}" "$(find "$found" -type f | wc -l)" \
        $((after - before))
    if [ "$status" -ne 0 ]; then
        failed=1
        tail -n 40 "build/fuzz/$name.log"
    fi
done
exit "$failed"
