#!/bin/bash
# The coordinator of a campaign as a Slurm job: sbatch coordinate.sh scenario.toml
#
# The ledger lives on the node's own disk, because SQLite's log is not safe on a network file system. A copy of it is
# kept beside the scenario, on shared storage: made every ten minutes and at the end, always complete, and put back by
# the next job, whichever node that gets. A node that dies takes at most ten minutes of runs with it; they are repeated.
#
#SBATCH --job-name=captime
#SBATCH --dependency=singleton
#SBATCH --cpus-per-task=1
#SBATCH --mem=4G
#SBATCH --time=24:00:00
#SBATCH --signal=B:TERM@300
# singleton: Slurm never runs two of these at once, so two coordinators never go on from the same copy (--take-over).
# B:TERM@300: five minutes before the end captime is asked to stop; it prints its certificate within seconds.
set -u
scenario=$1
kept=${KEPT:-${scenario%.toml}.kept.ledger}
every=${EVERY:-600}
place=$(mktemp -d "${TMPDIR:-/tmp}/captime.XXXXXX") || exit 6
ledger=$place/campaign.ledger

keep() {
    [ -e "$ledger" ] || return 0
    captime backup "$ledger" --output "$kept.new.$BASHPID" && mv -f "$kept.new.$BASHPID" "$kept"
}

rm -f "$kept".new.*
if [ -e "$kept" ]; then
    cp "$kept" "$ledger" || exit 6
fi
captime run "$scenario" --ledger "$ledger" --take-over "${@:2}" &
run=$!
saving=
# A copy at once as well: Slurm may not wait until the cluster is closed and the last copy is made.
trap 'kill -TERM "$run" 2>/dev/null; [ -n "$saving" ] || { keep & saving=$!; }' TERM INT
while sleep "$every"; do keep; done &
keeper=$!

wait "$run"
code=$?
# A signal ends `wait` before captime has ended.
while kill -0 "$run" 2>/dev/null; do
    wait "$run"
    code=$?
done
kill "$keeper" 2>/dev/null
[ -z "$saving" ] || wait "$saving"
if keep; then
    rm -rf "$place" "$kept".new.*
else
    echo "the ledger could not be copied to $kept; it is still $ledger on $(hostname)" >&2
fi
exit "$code"
