#!/bin/sh
# Builds the dashboard into dist/. The build is reproducible and needs only Go: esbuild is a tool of tools/go.mod.
set -eu
cd "$(dirname "$0")"
out=dist
mkdir -p "$out"
esbuild() { GOFLAGS='' GOWORK=off go -C tools tool esbuild "$@"; }
esbuild ../src/main.tsx --bundle --minify --format=esm --target=es2022 --jsx=automatic --legal-comments=none --log-level=warning \
  --tsconfig="$PWD/tsconfig.json" --outfile="$PWD/$out/app.js"
esbuild ../src/style.css --bundle --minify --log-level=warning --outfile="$PWD/$out/app.css"
cp src/index.html src/icon.svg "$out/"
{
  for of in preact uplot; do
    sed -n 's/^ *"\(name\|version\)": *"\(.*\)",*$/\2/p' "vendor/$of/package.json" | tr '\n' ' '
    printf '\n\n'
    cat "vendor/$of/LICENSE"
    printf '\n\n'
  done
} > "$out/licences.txt"
