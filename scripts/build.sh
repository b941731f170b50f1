#!/usr/bin/env bash
# Builds the release command and libraries, build/release/smg. Incremental; arguments go to the build
# (for instance --target smg_cli).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh --check >/dev/null || {
    echo "build: packages are missing (scripts/setup.sh --check lists them, scripts/setup.sh installs them)" >&2
    exit 1
}
[ -f build/release/build.ninja ] || cmake --preset release >/dev/null
cmake --build --preset release "$@"
