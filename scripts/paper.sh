#!/usr/bin/env bash
# Measures the tables of SpaceFusion's evaluation on a machine with a GPU: subgraphs and models in f16, fused, unfused and
# PyTorch (HuggingFace with its eager and its default attention) in one run.
#
#   scripts/paper.sh pack DIR              here: what scripts/gpu-bench.sh packs, and this
#   DIR/paper.sh run DIR [OPTION ...]      there: measures, writes DIR/paper.json; options as gpu-bench.sh has them
#                                          (--part models|subgraphs|large; large: batch 32 of 512 and all layers of Llama2-7B;
#                                          --trial: small sizes, to see what runs). Rows of several calls come together
#   scripts/paper.sh report [paper.json]   anywhere: bench/paper.json, bench/PAPER.md and bench/paper from it
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
verb="${1:-}" folder="${2:-}"
usage() { sed -n '2,11p' "${BASH_SOURCE[0]}" >&2; exit 2; }

case "$verb" in
pack)
    [ -n "$folder" ] || usage
    "$here/gpu-bench.sh" pack "$folder"
    cp "$here/paper.sh" "$folder/"
    ;;
run)
    [ -n "$folder" ] || usage
    "$here/gpu-bench.sh" run "$folder" --table gpu_paper --seconds 340 "${@:3}"
    ;;
report)
    cd "$here/.."
    [ -z "$folder" ] || cp "$folder" bench/paper.json
    python3 bench/gpu_paper_report.py bench/paper.json bench
    ;;
*) usage ;;
esac
