package lua

import (
	"regexp"
	"slices"
	"strings"
)

// Redis runs a script from its first line each time: it creates all functions, and each of them finds the locals that it refers to by a
// walk over those that others refer to. In a script of 70 functions that costs as much as a dozen small commands, so few are left at the
// top level.

var constant = regexp.MustCompile(`^local ([A-Z][A-Z_]*(?:, [A-Z][A-Z_]*)*) = ((?:'[^']*'|\d+)(?:, (?:'[^']*'|\d+))*)(?:\s+--.*)?\n$`)

// withConstants writes the values of constants where their names are used. What For replaces stays.
func withConstants(src string) string {
	values := map[string]string{}
	lines := strings.SplitAfter(src, "\n")
	for i, line := range lines {
		m := constant.FindStringSubmatch(line)
		if m == nil || strings.HasPrefix(line, "local "+eventsMost(leastEventsPerShard)) {
			continue
		}
		for n, name := range strings.Split(m[1], ", ") {
			values[name] = strings.Split(m[2], ", ")[n]
		}
		lines[i] = ""
	}
	return replaceNames(strings.Join(lines, ""), func(name string) string { return values[name] })
}

var word = regexp.MustCompile(`'[^'\n]*'|"[^"\n]*"|--[^\n]*|[A-Za-z0-9_]+`)

// replaceNames replaces names in the code, not in its strings and comments, where `by` returns something else than "".
func replaceNames(src string, by func(string) string) string {
	return word.ReplaceAllStringFunc(src, func(s string) string {
		if new := by(s); new != "" {
			return new
		}
		return s
	})
}

var (
	parameters = regexp.MustCompile(`^local function \w+\(([^)]*)\)\s*$`)
	declared   = regexp.MustCompile(`^local (?:function )?([\w, ]+)`)
)

// nested moves each top-level function that only one other function uses into that one, unless a loop calls it, which would create the
// function each time.
func nested(src string) string {
	lines := strings.SplitAfter(src, "\n")
	repeated := inLoops(lines)
	for {
		moved := false
		functions, all := functionsIn(lines), map[string]int{}
		names(lines, func(n string) { all[n]++ })
		for i, f := range functions {
			user := slices.IndexFunc(functions, func(g function) bool {
				return g.name != f.name && !repeated[g.name] && usesIn(lines[g.from:g.to], f.name) == all[f.name]-f.itself
			})
			if user < i || !fits(lines, f, functions[user]) {
				continue
			}
			lines, moved = moveInto(lines, f, functions[user]), true
			break
		}
		if !moved {
			return strings.Join(lines, "")
		}
	}
}

var loop = regexp.MustCompile(`^( *)(?:for|while) .* do\b`)

// inLoops returns the functions that loops call, and those that these call.
func inLoops(lines []string) map[string]bool {
	functions, repeated := functionsIn(lines), map[string]bool{}
	var mark func(calls []string)
	mark = func(calls []string) {
		for _, f := range functions {
			if !repeated[f.name] && usesIn(calls, f.name) > 0 {
				repeated[f.name] = true
				mark(lines[f.from:f.to])
			}
		}
	}
	for i, line := range lines {
		if m := loop.FindStringSubmatch(line); m != nil {
			to := i + 1
			for !functionEnds.MatchString(line) && to < len(lines) && !strings.HasPrefix(lines[to], m[1]+"end") {
				to++
			}
			mark(lines[i:to])
		}
	}
	return repeated
}

func usesIn(lines []string, name string) (n int) {
	names(lines, func(s string) {
		if s == name {
			n++
		}
	})
	return n
}

// fits reports whether the function means the same inside another: no parameter of that one hides what it refers to.
func fits(lines []string, f, into function) bool {
	m := parameters.FindStringSubmatch(lines[into.from])
	if m == nil {
		return false
	}
	hidden := strings.Split(strings.ReplaceAll(m[1], " ", ""), ",")
	for _, line := range lines[:f.from] {
		if d := declared.FindStringSubmatch(line); d != nil {
			for _, name := range strings.Split(strings.ReplaceAll(d[1], " ", ""), ",") {
				if slices.Contains(hidden, name) && usesIn(lines[f.from:f.to], name) > 0 {
					return false
				}
			}
		}
	}
	return !slices.Contains(hidden, f.name)
}

func moveInto(lines []string, f, into function) []string {
	out := slices.Concat(lines[:f.from], lines[f.to:into.from+1])
	for _, line := range lines[f.from:f.to] {
		out = append(out, "  "+line)
	}
	return append(out, lines[into.from+1:]...)
}
