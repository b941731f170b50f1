#!/usr/bin/env bash
# From the start of `smg run` to its first result, nothing cached and again, in phases: MiniLM, three models with widths
# that are no powers of two (bench/startup_models.py), and every model given, at (batch, sequence) = (1, 8), (3, 53) and
# (1, 128). Writes bench/STARTUP.md; meant for an idle machine. No cache that is already there is read or changed.
#
#   scripts/startup-bench.sh [--no-minilm] [--limit SECONDS] [--output FILE] [MODEL | FOLDER OF MODELS]...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

minilm=yes output=bench/STARTUP.md options=()
while [ $# -gt 0 ]; do
    case "$1" in
    --no-minilm) minilm=no ;;
    --limit) options+=(--limit "${2:?seconds}"); shift ;;
    --output) output="${2:?a file}"; shift ;;
    --*) sed -n '2,6p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
    *) break ;;
    esac
    shift
done
scripts/build.sh >&2
smg=build/release/smg
lavapipe=(/usr/share/vulkan/icd.d/lvp_icd*.json)
export VK_DRIVER_FILES="${VK_DRIVER_FILES:-${lavapipe[0]}}"
if [ "$minilm" = yes ]; then options+=(--minilm "$(scripts/minilm.sh)"); fi
for model in "$@"; do [ -e "$model" ] || { echo "startup-bench: there is no '$model'" >&2; exit 2; }; done

table="$(mktemp)"
trap 'rm -f "$table"' EXIT
{
    echo "# Start-up"
    echo
    echo "Made by \`scripts/startup-bench.sh\`: seconds from the start of \`smg run\` to its first result. Cold: the caches"
    echo "of smg and of the driver are empty, but for the calibration of the device; then the phases of that run. Warm: the"
    echo "same again, the better of two. Limits: 12 s cold (MiniLM 6), 0.35 s warm (MiniLM 0.5)."
    echo
    echo "$(nproc) cores, commit $(git rev-parse --short HEAD)."
    echo
    python3 bench/startup_bench.py "${options[@]}" "$smg" "$@"
} | tee "$table"
cp "$table" "$output"
