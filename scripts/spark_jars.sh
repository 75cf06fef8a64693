#!/bin/sh
# Print the jars of something that Spark can be given, separated by commas; fetch them with Maven when missing.
# usage: spark_jars.sh CACHE_FOLDER GROUPS ARTIFACT
#   (for example .cache/jars io.delta,io.unitycatalog delta-spark_4.2_2.13:4.4.0)
# The artifact is of the first group. Of what it depends on only the jars of these groups are taken: Spark has the rest.
set -eu
mkdir -p "$1"
cache=$(cd "$1" && pwd) groups=$2 artifact=${3%%:*} version=${3##*:}
folder=$cache/$artifact-$version

if [ ! -d "$folder" ]; then
    command -v mvn >/dev/null 2>&1 || { echo "Maven is needed to fetch $3 into $folder" >&2; exit 1; }
    work=$(mktemp -d "$cache/.fetching.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>${groups%%,*}</groupId><artifactId>$artifact</artifactId><version>$version</version></dependency>
  </dependencies>
</project>
POM
    mvn --batch-mode --quiet --file "$work/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
        -DincludeGroupIds="$groups" -DoutputDirectory="$work/jars" >&2
    mv "$work/jars" "$folder" 2>/dev/null || [ -d "$folder" ]   # another one may have been faster
fi
ls "$folder"/*.jar | paste -sd, -
