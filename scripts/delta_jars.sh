#!/bin/sh
# Print the jars that a Spark needs for Delta tables, separated by commas; fetch them with Maven when missing.
# usage: delta_jars.sh CACHE_FOLDER ARTIFACT   (for example .cache/jars delta-spark_4.2_2.13:4.4.0)
# Spark brings the other things that Delta depends on: only the jars of Delta's own groups are taken.
set -eu
mkdir -p "$1"
cache=$(cd "$1" && pwd) artifact=${2%%:*} version=${2##*:}
folder=$cache/$artifact-$version

if [ ! -d "$folder" ]; then
    command -v mvn >/dev/null 2>&1 || { echo "Maven is needed to fetch $2 into $folder" >&2; exit 1; }
    work=$(mktemp -d "$cache/.fetching.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>io.delta</groupId><artifactId>$artifact</artifactId><version>$version</version></dependency>
  </dependencies>
</project>
POM
    mvn --batch-mode --quiet --file "$work/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
        -DincludeGroupIds=io.delta,io.unitycatalog -DoutputDirectory="$work/jars" >&2
    mv "$work/jars" "$folder" 2>/dev/null || [ -d "$folder" ]   # another one may have been faster
fi
ls "$folder"/*.jar | paste -sd, -
