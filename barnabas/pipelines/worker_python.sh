#!/bin/sh
# Runs the Python of Spark's workers without Spark's own archives in PYTHONPATH; `session.py` says why.
IFS=:
kept=
for path in $PYTHONPATH; do
  case $path in
    */python/lib/*.zip | *.jar) ;;
    *) kept=$kept:$path ;;
  esac
done
PYTHONPATH=${kept#:} exec "$BARNABAS_WORKER_PYTHON" "$@"
