#!/usr/bin/env bash
# Measures smg on a machine with a GPU from a build made elsewhere.
#
#   scripts/gpu-bench.sh pack DIR   here: release binary, its libraries and the graphs, into DIR
#   scripts/gpu-bench.sh run DIR    there: measures, prints the table of bench/RESULTS.md and writes
#                                   DIR/RESULTS.md; needs a Vulkan loader, python3 with torch and
#                                   transformers, and nvidia-smi for clocks
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
verb="${1:-}" folder="${2:-}"
[ -n "$folder" ] || { sed -n '2,8p' "${BASH_SOURCE[0]}" >&2; exit 2; }

case "$verb" in
pack)
    scripts/build.sh
    mkdir -p "$folder/lib"
    cp build/release/smg "$folder/"
    # The loader and the C library belong to the machine there; what the compile side links goes along.
    ldd build/release/smg | awk '$3 ~ /^\// { print $3 }' |
        grep -E '/lib(shaderc|SPIRV|glslang|yyjson|utf8proc|protobuf-c)' |
        while read -r library; do cp -L "$library" "$folder/lib/"; done
    git rev-parse --short HEAD > "$folder/commit"
    ;;
run)
    work="$(mktemp -d)"
    trap 'rm -rf "$work"' EXIT
    export LD_LIBRARY_PATH="$PWD/$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    export SMG_CACHE_DIR="$work/cache"
    python3 bench/gpu_bench.py "$folder/smg" bench/graphs "$work" "$(cat "$folder/commit")" | tee "$folder/RESULTS.md"
    ;;
*) sed -n '2,8p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
