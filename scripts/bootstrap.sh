#!/bin/sh
# Build an environment with this project and one of its extras, at the versions of requirements.lock.
# usage: bootstrap.sh PYTHON VENV EXTRA
set -eu
python=$1 venv=$2 extra=$3

if ! "$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; then
    found=$("$python" --version 2>&1 || echo "no such command")
    echo "ubunye_orchestrate needs Python 3.10 to 3.14; '$python' is: $found" >&2
    echo "Name another one: make PYTHON=python3.12 <target>" >&2
    exit 1
fi

# The older engine that tests compare with: beside the environment, since it has the newer one.
peer=$venv/peers/ubunye-engine-0.7.0 peer_lock=tests/cli/engine-0.7.0.txt
[ "$extra" = dev ] && [ ! -d "$peer" ] || peer=

echo "Setting up $venv ($("$python" --version), extra '$extra'); only the first time ..."
if command -v uv >/dev/null 2>&1; then
    [ -x "$venv/bin/python" ] || uv venv --quiet --python "$("$python" -c 'import sys; print(sys.executable)')" "$venv"
    uv pip install --quiet --python "$venv/bin/python" --constraint requirements.lock --editable ".[$extra]"
    [ -z "$peer" ] || uv pip install --quiet --python "$venv/bin/python" --no-deps --require-hashes \
        --target "$peer" --requirements "$peer_lock"
else
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --constraint requirements.lock --editable ".[$extra]"
    [ -z "$peer" ] || "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
        --require-hashes --target "$peer" --requirement "$peer_lock"
fi
