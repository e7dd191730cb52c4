#!/bin/sh
# solve.sh MODEL OPTION=VALUE...
# HiGHS reads most of its options from a file: the words behind the model become one, in the directory of this run.
# `exec` makes the solver take the place of this shell, so nothing but the solver is timed from then on.
here=${0%/*}
model=$1
shift
printf '%s\n' "$@" > options.txt
LD_LIBRARY_PATH=$here/highs/lib
export LD_LIBRARY_PATH
exec "$here/highs/bin/highs" --options_file options.txt "$model"
