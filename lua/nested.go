package lua

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Redis runs a script from its first line each time: it creates all functions, and each of them finds the locals that it refers to by a
// walk over those that others refer to. In a script of 70 functions that costs as much as a dozen small commands, so few are left at the
// top level.

var constant = regexp.MustCompile(`^local ([A-Z][A-Z_]*(?:, [A-Z][A-Z_]*)*) = ((?:'[^']*'|\d+)(?:, (?:'[^']*'|\d+))*)(?:\s+--.*)?\n$`)

// withConstants writes the values of constants where their names are used. What For replaces stays.
func withConstants(parts []part) []part {
	values := map[string]string{}
	for p := range parts {
		parts[p].lines = slices.DeleteFunc(slices.Clone(parts[p].lines), func(l line) bool {
			if len(l.declares) == 0 || strings.HasPrefix(l.text, "local "+eventsMost(leastEventsPerShard)) {
				return false
			}
			m := constant.FindStringSubmatch(l.text)
			if m == nil {
				return false
			}
			for n, value := range strings.Split(m[2], ", ") {
				values[l.declares[n]] = value
			}
			return true
		})
	}
	for _, p := range parts {
		for i, l := range p.lines {
			if slices.ContainsFunc(l.names, func(name string) bool { return values[name] != "" }) {
				p.lines[i].text = replaceNames(l.text, func(name string) string { return values[name] })
			}
		}
	}
	return parts
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
	parameters      = regexp.MustCompile(`^local function \w+\(([^)]*)\)\s*$`) // of one that has a body below
	firstParameters = regexp.MustCompile(`^local function \w+\(([^)]*)\)`)
)

// nested moves each top-level function that only one other function uses into that one, unless loops call that one, which would create the
// function each time. `all`: how often each name occurs.
func nested(parts []part, all map[string]int) []part {
	repeated := inLoops(parts)
	for i := 0; i < len(parts); {
		f := parts[i]
		user := slices.IndexFunc(parts, func(p part) bool {
			return p.name != "" && p.name != f.name && p.uses[f.name] == all[f.name]-f.uses[f.name]
		})
		if f.name == "" || user < i || repeated[parts[user].name] || !fits(f, parts[user]) {
			i++
			continue
		}
		parts[user] = moveInto(f, parts[user])
		parts = slices.Delete(parts, i, i+1)
		i = 0 // those before it may fit into the function that it is part of now
	}
	return parts
}

var loop = regexp.MustCompile(`^ *(?:for|while) .* do\b`)

// inLoops returns the functions that loops call, and those that these call.
func inLoops(parts []part) map[string]bool {
	functions, repeated := map[string]part{}, map[string]bool{}
	for _, p := range parts {
		if p.name != "" {
			functions[p.name] = p
		}
	}
	var mark func(name string)
	mark = func(name string) {
		f, is := functions[name]
		if !is || repeated[name] {
			return
		}
		repeated[name] = true
		for called := range f.uses {
			mark(called)
		}
	}
	for _, p := range parts {
		end := "" // how the outermost loop around the line is closed; "" outside of loops
		for _, l := range p.lines {
			begins := end == "" && loop.MatchString(l.text)
			if begins {
				end = l.text[:strings.IndexAny(l.text, "fw")] + "end"
			} else if end == "" || strings.HasPrefix(l.text, end) {
				end = ""
				continue
			}
			for _, name := range l.names {
				mark(name)
			}
			if begins && functionEnds.MatchString(l.text) {
				end = ""
			}
		}
	}
	return repeated
}

// declaredTwice returns a name that two declarations at the top level have, which a function moved between them would confuse; "": none.
func declaredTwice(parts []part) string {
	known := map[string]bool{}
	for _, p := range parts {
		for _, l := range p.lines {
			for _, name := range l.declares {
				if known[name] {
					return name
				}
				known[name] = true
			}
		}
	}
	return ""
}

// fits reports whether the function means the same inside another: no parameter of that one hides what it refers to.
func fits(f, into part) bool {
	m := parameters.FindStringSubmatch(into.lines[0].text)
	if m == nil {
		return false
	}
	for _, name := range namesIn(m[1]) {
		if name == f.name || f.uses[name] > 0 && refersTo(f.lines, name) {
			return false
		}
	}
	return true
}

// refersTo reports whether a function refers to a variable of this name outside: not to a field, not in a string or comment, and not to a
// parameter that it declares itself or that a function in it declares.
func refersTo(lines []line, name string) bool {
	var rest strings.Builder
	for i := 0; i < len(lines); i++ {
		text := strings.TrimLeft(lines[i].text, " ")
		p := firstParameters.FindStringSubmatch(text)
		if p == nil || !slices.Contains(namesIn(p[1]), name) {
			rest.WriteString(lines[i].text)
			continue
		}
		indent := lines[i].text[:len(lines[i].text)-len(text)]
		if more := i+1 < len(lines) && strings.HasPrefix(lines[i+1].text, indent+" "); more || !functionEnds.MatchString(text) {
			for i++; i < len(lines) && !strings.HasPrefix(lines[i].text, indent+"end"); i++ {
			}
		}
	}
	code := word.ReplaceAllStringFunc(rest.String(), func(s string) string {
		if s[0] == '\'' || s[0] == '"' || s[0] == '-' {
			return ""
		}
		return s
	})
	return regexp.MustCompile(`(?m)(^|[^.\w])` + regexp.QuoteMeta(name) + `\b`).MatchString(code)
}

// moveInto returns the function with another one at the begin of its body.
func moveInto(f, into part) part {
	lines := slices.Clone(into.lines[:1])
	for _, l := range f.lines {
		l.text = "  " + l.text
		lines = append(lines, l)
	}
	merged := part{into.name, append(lines, into.lines[1:]...), maps.Clone(into.uses)}
	for name, n := range f.uses {
		merged.uses[name] += n
	}
	return merged
}
