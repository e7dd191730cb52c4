#!/bin/sh
# highs.sh MODEL OPTION=VALUE...
# HiGHS reads most of its options from a file: the words behind the model become one, in the directory of this run.
# `exec` makes the solver take the place of this shell, so nothing but the solver is timed from then on.
model=$1
shift
printf '%s\n' "$@" > options.txt
exec highs --options_file options.txt "$model"
