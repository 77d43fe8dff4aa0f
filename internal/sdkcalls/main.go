// Command sdkcalls writes the calls of the Go and TypeScript SDKs, one method for each operation of api/openapi.json, with its text. What
// does more than one request, or returns something else, is written by hand and left out here.
package main

import (
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "sdkcalls:", err)
		os.Exit(1)
	}
}

// run writes the generated files of the repository in a folder.
func run(root string) error {
	text, err := os.ReadFile(filepath.Join(root, "api/openapi.json"))
	if err != nil {
		return err
	}
	d, err := read(text)
	if err != nil {
		return err
	}
	inGo, err := format.Source([]byte(goCalls(d.calls())))
	if err != nil {
		return err
	}
	for path, text := range map[string]string{
		"sdk/go/client/calls.go":               string(inGo),
		"sdk/typescript/src/generatedcalls.ts": typescriptCalls(d.calls()),
		"sdk/typescript/src/generatedtypes.ts": typescriptTypes(d),
	} {
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

const width = 140

// wrap breaks a text into lines, each of which begins with the prefix.
func wrap(prefix, text string) string {
	var b strings.Builder
	line := prefix
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > width && line != prefix {
			b.WriteString(line + "\n")
			line = prefix
		}
		line += " " + word
	}
	return b.String() + line + "\n"
}
