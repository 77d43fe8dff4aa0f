package archtest

import (
	"slices"
	"strings"
	"testing"
)

// cliCore are the packages under internal/cli that all commands use, from the bottom up: each may import those before it.
var cliCore = []string{"output", "contexts", "exit", "session", "resource", "deployment"}

// cliCommands may import these packages of commands besides the core.
var cliCommands = map[string][]string{
	"top": {"top/tui", "why"}, // enter explains the chosen row
}

func cliPackage(path string) (string, bool) { return strings.CutPrefix(path, module+"/internal/cli/") }

// cliViolations returns the imports of a package of internal/cli that are not allowed.
func cliViolations(p pkg) (wrong []string) {
	from, inside := cliPackage(p.ImportPath)
	if !inside {
		return nil
	}
	report := func(dep, why string) { wrong = append(wrong, p.ImportPath+" imports "+dep+": "+why) }
	above := slices.Index(cliCore, from)
	for _, dep := range p.Imports {
		to, isCLI := cliPackage(dep)
		below := slices.Index(cliCore, to)
		switch {
		case dep == module+"/internal/cli":
			report(dep, "a command does not know the tree that it is in")
		case !isCLI || slices.Contains(cliCommands[from], to):
		case below < 0:
			report(dep, "packages of commands know the core, and not each other")
		case above >= 0 && below >= above:
			report(dep, "a package of the core knows those before it only")
		}
	}
	return wrong
}

func TestCommandsKnowTheCoreOnly(t *testing.T) {
	seen := 0
	for _, p := range list(t, "./internal/cli/...") {
		seen++
		for _, w := range cliViolations(p) {
			t.Error(w)
		}
	}
	if seen < len(cliCore)+10 {
		t.Errorf("looked at %d packages only", seen)
	}
}

// The check must be able to fail.
func TestCommandsAreChecked(t *testing.T) {
	in := func(name string) string { return module + "/internal/cli/" + name }
	for _, p := range []pkg{
		{ImportPath: in("task"), Imports: []string{in("worker")}},
		{ImportPath: in("status"), Imports: []string{in("why")}},
		{ImportPath: in("queue"), Imports: []string{module + "/internal/cli"}},
		{ImportPath: in("session"), Imports: []string{in("resource")}},
		{ImportPath: in("resource"), Imports: []string{in("event")}},
		{ImportPath: in("new"), Imports: []string{in("top/tui")}},
	} {
		if len(cliViolations(p)) == 0 {
			t.Errorf("%+v was let through", p)
		}
	}
	for _, p := range []pkg{
		{ImportPath: in("task"), Imports: []string{in("session"), in("resource")}},
		{ImportPath: in("top"), Imports: []string{in("why"), in("top/tui"), in("deployment")}},
	} {
		if wrong := cliViolations(p); len(wrong) > 0 {
			t.Errorf("%v", wrong)
		}
	}
}
