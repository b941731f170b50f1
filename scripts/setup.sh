#!/usr/bin/env bash
# Installs what smg needs to be built and tested, on Debian 12 (bookworm) and Debian 13 (trixie).
# Run as root. It says first what it will do, changes nothing when everything is there already
# (well under a second), and can be run again after an interruption.
#
# Debian 12's own shader compiler and Mesa are too old (no GL_KHR_cooperative_matrix), so on Debian
# 12 the Vulkan toolchain comes from trixie, and Mesa from trixie-backports: a second source with
# the address and the signing key of the machine's existing Debian source, pinned at priority 100 so
# that nothing else is upgraded from it on its own. This upgrades libc6: programs built here need
# glibc 2.38 or newer. On Debian 13 only Mesa comes from trixie-backports.
#
#   scripts/setup.sh            install what is missing
#   scripts/setup.sh --check    only say what is missing; exit 1 if something is
#   scripts/setup.sh --lint     also clang-format and clang-tidy, of one version on every machine, and numpy for
#                               docs/examples/run_bundle.py: from PyPI, into a folder of their own (tests meta.format,
#                               meta.tidy and meta.runtime; SMG_LINT_DIR names another folder)
#   scripts/setup.sh --cross    also what builds the runtime for Windows and 64-bit ARM, and runs the latter (presets
#                               mingw and aarch64); these packages are the distribution's own

set -euo pipefail

check=no lint=no cross=no
for word in "$@"; do
    case "$word" in
        --check) check=yes ;;
        --lint) lint=yes ;;
        --cross) cross=yes ;;
        *) echo "usage: scripts/setup.sh [--check | --lint | --cross]" >&2; exit 2 ;;
    esac
done

say() { printf 'setup: %s\n' "$*"; }
die() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

host_packages=(gcc g++ clang lld cmake ninja-build make pkg-config git python3 python3-venv python3-pip
    libprotobuf-c-dev protobuf-c-compiler libyyjson-dev libutf8proc-dev)
# shaderc, SPIRV-Tools, the loader, volk, the validation layers; cmocka 1.1.8 has a CMake package.
vulkan_packages=(libshaderc-dev glslc spirv-tools libvulkan-dev libvulkan-volk-dev
    vulkan-validationlayers vulkan-tools libcmocka-dev libyyjson-dev)
mesa_packages=(mesa-vulkan-drivers mesa-drm-shim)
mesa_minimum=25 # major version; stock bookworm has 22, stock trixie 25.0, backports 26

cross_packages=(gcc-mingw-w64-x86-64-win32 gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)

lint_packages=(clang-format==19.1.7 clang-tidy==19.1.0.1 numpy==2.2.6)
lint_folder="${SMG_LINT_DIR:-/usr/local/lib/smg-lint}"

setup_lint() {
    [ "$(cat "$lint_folder/packages" 2>/dev/null)" = "${lint_packages[*]}" ] && return 0
    say "installing ${lint_packages[*]} into $lint_folder"
    python3 -m venv --clear "$lint_folder" || die "cannot write $lint_folder (run as root, or set SMG_LINT_DIR)"
    "$lint_folder/bin/python3" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
        "${lint_packages[@]}" || die "pip could not get ${lint_packages[*]}"
    printf '%s\n' "${lint_packages[*]}" >"$lint_folder/packages"
}

installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null || true)" = installed ]
}

install() { apt-get install -y -q --no-install-recommends "$@"; }

setup_cross() {
    local wanted=()
    for package in "${cross_packages[@]}"; do
        installed "$package" || wanted+=("$package")
    done
    [ "${#wanted[@]}" -gt 0 ] || return 0
    say "installing ${wanted[*]}"
    [ "$(id -u)" -eq 0 ] || die "must be run as root"
    export DEBIAN_FRONTEND=noninteractive
    install "${wanted[@]}" || { apt-get update -q && install "${wanted[@]}"; } || die "apt-get could not get ${wanted[*]}"
}

setup_more() {
    [ "$lint" = no ] || setup_lint
    [ "$cross" = no ] || setup_cross
}

version_of() { dpkg-query -W -f '${Version}' "$1" 2>/dev/null || true; }

# A package counts as present on Debian 12 only if its version is not bookworm's own old one.
missing=()
for package in "${host_packages[@]}" "${vulkan_packages[@]}"; do
    installed "$package" || missing+=("$package")
done
if installed libshaderc-dev && dpkg --compare-versions "$(version_of libshaderc-dev)" lt 2024; then
    missing+=("libshaderc-dev (newer than $(version_of libshaderc-dev))")
fi
for package in "${mesa_packages[@]}"; do
    if ! installed "$package"; then
        missing+=("$package")
    elif dpkg --compare-versions "$(version_of "$package")" lt "$mesa_minimum"; then
        missing+=("$package (newer than $(version_of "$package"))")
    fi
done

if [ "${#missing[@]}" -eq 0 ]; then
    [ "$check" = yes ] || setup_more
    say "everything is installed"
    exit 0
fi
say "missing: ${missing[*]}"
[ "$check" = yes ] && exit 1

[ -r /etc/os-release ] || die "no /etc/os-release: only Debian 12 and 13 are supported"
# shellcheck disable=SC1091
. /etc/os-release
release="${ID:-unknown} ${VERSION_ID:-}"
case "$release" in
    "debian 12" | "debian 13") ;;
    *) die "this is '$release'; only Debian 12 and 13 are supported. Install by hand:" \
        "${host_packages[*]} ${vulkan_packages[*]} ${mesa_packages[*]}" ;;
esac
[ "$(id -u)" -eq 0 ] || die "must be run as root"

# The address and key of the Debian source that this machine already uses, in either format.
find_source() {
    local file
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -f "$file" ] || continue
        awk -v suite="$VERSION_CODENAME" '
            function emit() { if (hit && uri != "") { print uri, key; found = 1; exit } }
            /^[ \t]*#/ { next }
            /^[ \t]*$/ { emit(); hit = 0; uri = ""; key = "" }
            tolower($1) == "uris:" { uri = $2 }
            tolower($1) == "suites:" { for (i = 2; i <= NF; i++) if ($i == suite) hit = 1 }
            tolower($1) == "signed-by:" { key = $2 }
            END { if (!found) emit() }' "$file"
    done
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -f "$file" ] || continue
        sed -n 's/^deb[ \t]\+\(\[[^]]*\][ \t]\+\)\?\([^ \t]\+\)[ \t]\+'"$VERSION_CODENAME"'[ \t].*/\2/p' "$file"
    done
}
read -r uri key < <(find_source | head -n 1) || true
[ -n "${uri:-}" ] || die "found no source for $VERSION_CODENAME in the apt sources of this machine"
case "${key:-}" in
    /*) ;;
    *) key=/usr/share/keyrings/debian-archive-keyring.gpg ;;
esac
[ -r "$key" ] || die "the Debian archive keyring $key is not there"

if [ "$release" = "debian 12" ]; then
    suites="trixie trixie-backports"
    toolchain=(-t trixie)
else
    suites="trixie-backports"
    toolchain=()
fi

cat <<PLAN
setup: on $PRETTY_NAME this will
  1. add the suites '$suites' (same address and key as the existing Debian source), priority 100
  2. apt-get update
  3. install from $VERSION_CODENAME: ${host_packages[*]}
  4. install ${toolchain[*]:-from trixie}: ${vulkan_packages[*]}
  5. install at the trixie-backports version: ${mesa_packages[*]}
PLAN

export DEBIAN_FRONTEND=noninteractive
write_if_changed() { # path, text on stdin
    local text
    text="$(cat)"
    if [ ! -f "$1" ] || [ "$(cat "$1")" != "$text" ]; then
        printf '%s\n' "$text" >"$1"
    fi
}
write_if_changed /etc/apt/sources.list.d/smg-toolchain.sources <<SOURCE
# Written by smg's scripts/setup.sh.
Types: deb
URIs: $uri
Suites: $suites
Components: main
Signed-By: $key
SOURCE
{
    echo "# Written by smg's scripts/setup.sh: newer suites are used only where they are asked for."
    for suite in $suites; do
        [ "$release" = "debian 13" ] && [ "$suite" = trixie ] && continue
        printf '\nPackage: *\nPin: release n=%s\nPin-Priority: 100\n' "$suite"
    done
} | write_if_changed /etc/apt/preferences.d/smg-toolchain

apt-get update -q

wanted=()
for package in "${host_packages[@]}"; do
    installed "$package" && continue
    # What Debian 12 does not have (yyjson) comes with the toolchain below.
    apt-cache madison "$package" | grep -q " $VERSION_CODENAME/" && wanted+=("$package")
done
[ "${#wanted[@]}" -eq 0 ] || install "${wanted[@]}"

install "${toolchain[@]}" "${vulkan_packages[@]}"

mesa="$(apt-cache madison mesa-vulkan-drivers | awk -F'|' '/trixie-backports/ { gsub(/ /, "", $2); print $2; exit }')"
[ -n "$mesa" ] || die "trixie-backports lists no mesa-vulkan-drivers"
pinned=()
for package in "${mesa_packages[@]}"; do pinned+=("$package=$mesa"); done
install -t trixie "${pinned[@]}"

setup_more
say "done: glslc $(version_of glslc), Mesa $(version_of mesa-vulkan-drivers), gcc $(gcc -dumpfullversion), cmake $(cmake --version | awk 'NR == 1 { print $3 }')"
