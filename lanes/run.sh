#!/bin/sh
# Run tests on other versions: those of the lower rooms on the newest pandas and on the lowest of everything, those of
# Spark's frames and of its IO manager on Spark 3.5 (with the Java of UBUNYE_SPARK_JDK: it runs on 8, 11 and 17).
# usage: lanes/run.sh LANE   (newest, lowest or spark35; the versions are in lanes/LANE.lock)
set -eu
cd "$(dirname "$0")/.."
lane=$1
case "$lane" in
newest) wanted="3.14 3.13 3.12 3.11" without="" ;;
# DuckDB 1 changes some types when it takes in the Arrow tables of the conformance suite (null becomes int32), and
# pyarrow 19 has ended the process on some of the rare layouts that the property tests draw.
lowest) wanted="3.10 3.11"
    without="--deselect=tests/hashing/test_conformance.py::TestDuckDB --ignore=tests/hashing/test_properties.py" ;;
spark35) wanted="3.11 3.10" without="" ;;
*) echo "no lane '$lane'; there are newest, lowest and spark35" >&2; exit 1 ;;
esac

# A version manager may have a command for a Python that it does not let run here: ask each for its version.
python=
for version in $wanted; do
    for candidate in "python$version" "$HOME"/.pyenv/versions/"$version".*/bin/python; do
        if [ "$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$version" ]; then
            python=$candidate
            break 2
        fi
    done
done
if [ -z "$python" ]; then
    echo "lane $lane needs one of Python $wanted; none was found" >&2
    exit 1
fi

venv=".venv-$lane"
if [ ! -e "$venv/.ready" ] || [ "lanes/$lane.lock" -nt "$venv/.ready" ]; then
    rm -rf "$venv"
    if command -v uv >/dev/null 2>&1; then
        uv venv --quiet --python "$python" "$venv"
        uv pip install --quiet --python "$venv/bin/python" --requirement "lanes/$lane.lock"
        uv pip install --quiet --python "$venv/bin/python" --no-deps --editable .
    else
        "$python" -m venv "$venv"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "lanes/$lane.lock"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --editable .
    fi
    touch "$venv/.ready"
fi

# Warnings are not errors here: what a library of another version deprecates is looked at when it is locked.
if [ "$lane" = spark35 ]; then
    # The engine that reads our records is not in this environment.
    exec "$venv/bin/python" -m pytest tests/spark tests/dagster_io/test_spark_*.py -q -W ignore -p no:cacheprovider \
        -m "not long" --ignore=tests/spark/test_cluster.py --deselect=tests/dagster_io/test_spark_cluster.py \
        --deselect=tests/dagster_io/test_spark_delta.py::test_the_engines_own_program_reads_what_spark_left
fi
# The engine and Spark are not in the other environments.
exec "$venv/bin/python" -m pytest tests/hashing tests/compare -q -W default -p no:cacheprovider \
    -m "not long and not spark" $without --ignore-glob='*spark*' --ignore-glob='*engine*' --ignore-glob='*memory*'
