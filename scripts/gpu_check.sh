#!/usr/bin/env bash
# Checks packages for GPUs.
#
#   scripts/gpu_check.sh prepare [TARGET ...]   on any machine with g++ and Triton: records and packs
#                                               (cuda:sm_80 and cuda:sm_90 unless given), also with
#                                               kernels in several configurations
#   scripts/gpu_check.sh                        on a machine with a GPU: compares and measures, in
#                                               five minutes at most; with another Python than the
#                                               package's it compares the graphs only
#
# PYTHON: the interpreter; PACKAGE: the file (build/gpu_check.pkg).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python}
package=${PACKAGE:-build/gpu_check.pkg}
export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"

if [ "${1:-}" = prepare ]; then
    shift
    [ $# -gt 0 ] || set -- cuda:sm_80 cuda:sm_90
    mkdir -p "$(dirname "$package")"
    recording=${package%.pkg}.rec
    "$python" -m aotdyn record --device "$1" -o "$recording" "$here/gpu_programs.py"
    targets=()
    for target in "$@"; do targets+=(--target "$target"); done
    "$python" -m aotdyn pack "$recording" -o "$package" "${targets[@]}"
    exec "$python" -m aotdyn pack --tune "$recording" -o "${package%.pkg}.tuned.pkg" "${targets[@]}"
fi

[ -f "$package" ] || { echo "there is no $package: run '$0 prepare' first" >&2; exit 2; }
start=$SECONDS
status=0
export PYTHONUNBUFFERED=1  # what was found is printed, whatever happens next
timeout 100 "$python" "$here/gpu_graphs.py" "$package" || {
    status=$?
    [ $status -ne 124 ] || echo "there was no time for the other graphs"
}
if "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then
    left=$((285 - SECONDS + start))
    "$python" "$here/gpu_check.py" "$package" --seconds "$left" "$@" || status=$?
fi
exit $status
