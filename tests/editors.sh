#!/usr/bin/env bash
# Packs the extension for VS Code, and generates and tests the tree-sitter grammar: its corpus, its queries, and all programs of examples/
# without a node that is an error. Needs node, npm and the network; not part of `.ci/run`.
#
#     $ tests/editors.sh                          both
#     $ tests/editors.sh vscode                   editors/vscode to target/editors/brolga.vsix
#     $ TREE_SITTER=… tests/editors.sh grammar    with this `tree-sitter`; else the one on the PATH, npm's, or cargo's
#
# npm's `tree-sitter-cli` downloads a program when it is installed; where that is not possible cargo builds it, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$PWD/target/editors
version=0.25.10
mkdir -p "$out"

tree_sitter() {
    if [ -n "${TREE_SITTER-}" ]; then
        echo "$TREE_SITTER"
    elif command -v tree-sitter; then
        :
    else
        (cd "$out" && npm install --no-save --no-audit --no-fund "tree-sitter-cli@$version" >&2) || true
        if "$out/node_modules/.bin/tree-sitter" --version >/dev/null 2>&1; then
            echo "$out/node_modules/.bin/tree-sitter"
        else
            cargo install --quiet --locked --root "$out/cargo" "tree-sitter-cli@$version" >&2
            echo "$out/cargo/bin/tree-sitter"
        fi
    fi
}

grammar() {
    local command folder
    command=$(tree_sitter)
    folder=$out/tree-sitter-brolga
    rm -rf "$folder"
    cp -r editors/tree-sitter-brolga "$folder"
    (
        cd "$folder"
        "$command" generate
        "$command" test
        # Queries that name what the grammar does not have are errors.
        for query in queries/*.scm; do
            "$command" query --quiet "$query" "$OLDPWD"/examples/*.jlir >/dev/null
        done
    )
    # Fails if a tree has an error.
    (cd "$folder" && "$command" parse --quiet "$OLDPWD"/examples/*.jlir)
    echo "examples/: $(ls examples/*.jlir | wc -l) programs without errors"
}

vscode() {
    local folder=$out/vscode
    mkdir -p "$folder"
    cp -r editors/vscode/. LICENSE-MIT LICENSE-APACHE "$folder"
    (
        cd "$folder"
        npm install --no-audit --no-fund
        npm run check
        npx vsce package --allow-missing-repository --out "$out/brolga.vsix"
        npx vsce ls
    )
    ls -l "$out/brolga.vsix"
}

case "${1-}" in
'') grammar && vscode ;;
grammar | vscode) "$1" ;;
*)
    echo 'usage: tests/editors.sh [grammar | vscode]' >&2
    exit 2
    ;;
esac
