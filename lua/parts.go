package lua

import (
	"regexp"
	"strings"
)

// part is a top-level function of a script, or the code between two of them.
type part struct {
	name  string // of the function; "" for other code
	lines []line
	uses  map[string]int // how often each name occurs in it, outside of lines that are comments
}

// line is a line of code with its end. What is known of it is found once for all scripts that include it.
type line struct {
	text     string
	names    []string // in it, also those in strings and at its end in a comment; none if all of it is a comment
	declares []string // variables that it declares at the top level
}

var (
	functionBegins = regexp.MustCompile(`^local function (\w+)\(`)
	functionEnds   = regexp.MustCompile(`\bend(\s+--.*)?\s*$`)
	declared       = regexp.MustCompile(`^local (?:function )?([\w, ]+)`)
)

func parseLine(text string) line {
	l := line{text: text}
	if !strings.HasPrefix(strings.TrimSpace(text), "--") {
		l.names = strings.FieldsFunc(text, func(r rune) bool { return !inName(r) })
	}
	if d := declared.FindStringSubmatch(text); d != nil {
		l.declares = namesIn(d[1])
	}
	return l
}

func inName(r rune) bool {
	return r >= 'a' && r <= 'z' || r == '_' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

func namesIn(list string) []string { return strings.Split(strings.ReplaceAll(list, " ", ""), ",") }

// partsOf finds functions by their layout: on one line, or up to an end that is not indented.
func partsOf(lines []line) (parts []part) {
	for i, from := 0, 0; i < len(lines); {
		to, name := i+1, ""
		if begins := functionBegins.FindStringSubmatch(lines[i].text); begins != nil {
			name = begins[1]
			if more := to < len(lines) && strings.HasPrefix(lines[to].text, " "); more || !functionEnds.MatchString(lines[i].text) {
				for to < len(lines) && !strings.HasPrefix(lines[to].text, "end") {
					to++
				}
				to = min(to+1, len(lines))
			}
		}
		if name != "" && from < i {
			parts = append(parts, newPart("", lines[from:i]))
		}
		if name != "" {
			parts, from = append(parts, newPart(name, lines[i:to])), to
		} else if to == len(lines) {
			parts = append(parts, newPart("", lines[from:]))
		}
		i = to
	}
	return parts
}

func newPart(name string, lines []line) part {
	p := part{name, lines, map[string]int{}}
	for _, l := range lines {
		for _, n := range l.names {
			p.uses[n]++
		}
	}
	return p
}

// usesIn counts how often each name occurs in all parts.
func usesIn(parts []part) map[string]int {
	all := map[string]int{}
	for _, p := range parts {
		for name, n := range p.uses {
			all[name] += n
		}
	}
	return all
}

// source returns the code of all parts.
func source(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		for _, l := range p.lines {
			b.WriteString(l.text)
		}
	}
	return b.String()
}
