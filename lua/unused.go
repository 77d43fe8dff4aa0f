package lua

import (
	"regexp"
	"slices"
	"strings"
)

var (
	functionBegins = regexp.MustCompile(`^local function (\w+)\(`)
	functionEnds   = regexp.MustCompile(`\bend(\s+--.*)?\s*$`)
)

// withoutUnused removes top-level functions that nothing calls: Redis creates every function of a script each time it runs, and no
// script needs all of the fragments that it includes.
func withoutUnused(src string) string {
	lines := strings.SplitAfter(src, "\n")
	functions, all := functionsIn(lines), map[string]int{}
	names(lines, func(n string) { all[n]++ })
	for {
		unused := slices.IndexFunc(functions, func(f function) bool { return all[f.name] == f.itself })
		if unused < 0 {
			return strings.Join(lines, "")
		}
		f := functions[unused]
		names(lines[f.from:f.to], func(n string) { all[n]-- })
		clear(lines[f.from:f.to])
		functions = slices.Delete(functions, unused, unused+1)
	}
}

// function is a top-level function in these lines.
type function struct {
	name     string
	from, to int
	itself   int // how often it refers to itself
}

// functionsIn finds them by their layout: on one line, or up to an end that is not indented.
func functionsIn(lines []string) (found []function) {
	for i := 0; i < len(lines); i++ {
		begins := functionBegins.FindStringSubmatch(lines[i])
		if begins == nil {
			continue
		}
		f := function{name: begins[1], from: i, to: i + 1}
		if more := i+1 < len(lines) && strings.HasPrefix(lines[i+1], " "); more || !functionEnds.MatchString(lines[i]) {
			for f.to < len(lines) && !strings.HasPrefix(lines[f.to], "end") {
				f.to++
			}
			f.to = min(f.to+1, len(lines))
		}
		names(lines[f.from:f.to], func(n string) {
			if n == f.name {
				f.itself++
			}
		})
		found, i = append(found, f), f.to-1
	}
	return found
}

// names calls each for each name in lines of code.
func names(lines []string, each func(string)) {
	for _, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "--") {
			continue
		}
		for n := range strings.FieldsFuncSeq(line, func(r rune) bool { return !inName(r) }) {
			each(n)
		}
	}
}

func inName(r rune) bool {
	return r >= 'a' && r <= 'z' || r == '_' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}
