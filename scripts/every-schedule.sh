#!/usr/bin/env bash
# Every schedule of the repository's graphs and of random graphs, on several targets, in the interpreter's per-lane mode,
# in every size, against the reference (tests/unit/test_every_schedule.c; ctest runs each distinct program once, in one
# size, of long lists a share). Prints how many; the exit status is 1 when one differs, races or reads what its lane does
# not hold. A quarter of an hour.
#
#   scripts/every-schedule.sh         as many random graphs as ctest
#   scripts/every-schedule.sh 1000    so many
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1:-}" in
"") ;;
*[!0-9]*)
    sed -n '7,8p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
*) export SMG_GRAPHS="$1" ;;
esac

cmake --preset dev >/dev/null
cmake --build --preset dev --target test_every_schedule >build/dev/every-schedule.log 2>&1 || {
    tail -n 50 build/dev/every-schedule.log >&2
    exit 1
}
export SMG_EVERY_BY_LANE=1 SMG_TEST_OUTPUT="$PWD/build/dev/every-schedule"
mkdir -p "$SMG_TEST_OUTPUT"
exec build/dev/tests/test_every_schedule
