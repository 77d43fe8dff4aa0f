// Command sdkcalls writes the calls of the Go and TypeScript SDKs, one method for each operation of api/openapi.json, with its text. What
// takes more than one request, or has older arguments or another result, is written by hand.
package main

import (
	"fmt"
	"go/format"
	"os"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "sdkcalls:", err)
		os.Exit(1)
	}
}

// run writes the generated files. It is called in the repository's folder.
func run() error {
	text, err := os.ReadFile("api/openapi.json")
	if err != nil {
		return err
	}
	d, err := read(text)
	if err != nil {
		return err
	}
	calls, err := d.calls()
	if err != nil {
		return err
	}
	unformatted, err := goCalls(calls)
	if err != nil {
		return err
	}
	inGo, err := format.Source([]byte(unformatted))
	if err != nil {
		return err
	}
	inTypeScript, err := typescriptCalls(calls)
	if err != nil {
		return err
	}
	for path, text := range map[string]string{
		"sdk/go/client/calls.go":               string(inGo),
		"sdk/typescript/src/generatedcalls.ts": inTypeScript,
		"sdk/typescript/src/generatedtypes.ts": typescriptTypes(d),
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
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
