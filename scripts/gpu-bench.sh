#!/usr/bin/env bash
# Measures the GPU table on a machine with a GPU, from a build made elsewhere.
#
#   scripts/gpu-bench.sh pack DIR              here: release binary, its libraries, graphs and scripts, into DIR; where
#         [--reference FOLDER]                 Debian's packages of ggml can be had, they and their peer program, too.
#                                              FOLDER has kernels written by hand: its build.sh builds its runner and the
#                                              kernels of its jobs_*.txt into DIR/reference, and rows are compared with
#                                              those that bench/gpu_rows.py knows
#   DIR/gpu-bench.sh run DIR [OPTION ...]      there: measures, writes DIR/results.json; needs a Vulkan loader, python3
#                                              with torch and transformers, and nvidia-smi for clocks. Options:
#                                              --seconds N (480), --part subgraphs|models|ggml|hand|compiled, --only WORDS,
#                                              --no-compiled (torch.compile takes longest, up to a minute a row),
#                                              --tune [SECONDS] (each row at its sizes, too; that stands beside plans by price).
#                                              Rows of several calls come together in one file
#   scripts/gpu-bench.sh report [results.json] anywhere: bench/results.json, bench/RESULTS.md and bench/plots from it
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
verb="${1:-}" folder="${2:-}"
usage() { sed -n '2,15p' "${BASH_SOURCE[0]}" >&2; exit 2; }

pack() {
    local reference=""
    if [ $# -gt 2 ]; then
        if [ "$3" != --reference ] || [ $# -ne 4 ]; then usage; fi
        [ -f "$4/build.sh" ] || { echo "gpu-bench: no build.sh in $4" >&2; exit 1; }
        reference="$(cd "$4" && pwd)"
    fi
    mkdir -p "$folder/lib" "$folder/bench"
    folder="$(cd "$folder" && pwd)"
    [ "$reference" != "$folder/reference" ] || { echo "gpu-bench: $reference is where its build goes" >&2; exit 1; }
    rm -rf "$folder/reference" # an earlier one's
    cd "$here/.."
    scripts/build.sh --target smg_cli
    cp build/release/smg "$folder/" && strip "$folder/smg"
    # The loader and the C library belong to the machine there; what the compile side links goes along.
    ldd build/release/smg | awk '$3 ~ /^\// { print $3 }' |
        grep -E '/lib(shaderc|SPIRV|glslang|yyjson|utf8proc|protobuf-c)' |
        while read -r library; do cp -L "$library" "$folder/lib/"; done
    cp -r bench/gpu_*.py bench/graphs "$folder/bench/"
    cp scripts/gpu-bench.sh "$folder/"
    git rev-parse --short HEAD > "$folder/commit"
    pack_ggml || echo "gpu-bench: no ggml: its column stays empty" >&2
    [ -z "$reference" ] || pack_reference "$reference"
}

# Kernels written by hand, by their own build script, which goes on where a kernel of a list fails.
pack_reference() {
    local job lacking=()
    mkdir -p "$folder/reference"
    BUILD="$folder/reference" sh "$1/build.sh"
    cp "$1"/jobs_*.txt "$folder/reference/"
    [ -x "$folder/reference/run" ] || { echo "gpu-bench: $1/build.sh built no runner" >&2; exit 1; }
    while read -r job; do
        [ -s "$folder/reference/$job.spv" ] || lacking+=("$job")
    done < <(grep -hv '^#' "$folder"/reference/jobs_*.txt | sed -n 's/^ *\([^ |]*\) *|.*/\1/p')
    [ ${#lacking[@]} -eq 0 ] || { echo "gpu-bench: $1/build.sh built no ${lacking[*]}" >&2; exit 1; }
}

# Debian's own packages, unpacked, and a program that uses them.
pack_ggml() {
    local work packages=(libggml0 libggml0-backend-vulkan libggml-dev)
    work="$(mktemp -d)"
    (cd "$work" && apt-get download "${packages[@]}" && for p in *.deb; do dpkg -x "$p" all; done) > /dev/null 2>&1 || return 1
    mkdir -p "$folder/ggml"
    cp -L "$work"/all/usr/lib/*/libggml.so.0 "$work"/all/usr/lib/*/libggml-base.so.0 \
        "$work"/all/usr/lib/*/ggml/backends0/libggml-vulkan.so "$folder/ggml/" || return 1
    cc -O2 -I"$work/all/usr/include" -o "$folder/ggml/peer" bench/ggml_peer.c -L"$folder/ggml" -l:libggml.so.0 \
        -l:libggml-base.so.0 -lm -Wl,-rpath,'$ORIGIN' -Wl,--unresolved-symbols=ignore-in-shared-libs || return 1
    xz -f -T1 "$folder/ggml/libggml-vulkan.so" # 40 MB of shaders
    rm -rf "$work"
}

run() {
    shift 2
    folder="$(cd "$folder" && pwd)"
    local work
    work="$(mktemp -d)"
    trap "rm -rf '$work'" EXIT
    export LD_LIBRARY_PATH="$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" SMG_VALIDATION=0 PYTHONDONTWRITEBYTECODE=1
    export SMG_CACHE_DIR="${SMG_CACHE_DIR-$work/cache}"
    local ggml=()
    if [ -x "$folder/ggml/peer" ]; then
        cp "$folder"/ggml/* "$work/"
        python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1] + ".xz"), open(sys.argv[1], "wb"))' \
            "$work/libggml-vulkan.so"
        ggml=(--ggml "$work/peer")
    fi
    local hand=()
    [ ! -x "$folder/reference/run" ] || hand=(--hand "$folder/reference")
    python3 "$folder/bench/gpu_bench.py" "$folder/smg" "$folder" --commit "$(cat "$folder/commit")" "${ggml[@]}" "${hand[@]}" "$@"
}

case "$verb" in
pack) [ -n "$folder" ] || usage; pack "$@" ;;
run) [ -n "$folder" ] || usage; run "$@" ;;
report)
    cd "$here/.."
    [ -z "$folder" ] || cp "$folder" bench/results.json
    python3 bench/gpu_report.py bench/results.json bench
    ;;
*) usage ;;
esac
