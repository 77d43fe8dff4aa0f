package archtest

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

const longestLine = 140 // characters, a tab for one

func TestLinesAreShort(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel("../..", path)
		if d.IsDir() && (d.Name() == ".git" || name == "bin") {
			return filepath.SkipDir
		}
		if ext := filepath.Ext(path); ext != ".go" && ext != ".lua" {
			return nil
		}
		seen++
		text, err := os.ReadFile(path)
		for _, line := range tooLong(string(text), filepath.Ext(path) == ".go") {
			t.Errorf("%s:%d is longer than %d characters", name, line, longestLine)
		}
		return err
	})
	if err != nil || seen < 100 {
		t.Fatalf("looked at %d files: %v", seen, err)
	}
}

// tooLong returns the numbers of the lines that are. Text in Go's backquotes, such as a field's tags, cannot be broken.
func tooLong(text string, isGo bool) (lines []int) {
	var quoted map[int]bool
	if isGo {
		quoted = inBackquotes(text)
	}
	number := 0
	for line := range strings.Lines(text) {
		if number++; utf8.RuneCountInString(strings.TrimRight(line, "\r\n")) > longestLine && !quoted[number] {
			lines = append(lines, number)
		}
	}
	return lines
}

// inBackquotes returns which lines are too long because of text in backquotes: without it they would be short.
func inBackquotes(text string) map[int]bool {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, 0)
	quoted := map[int]bool{}
	for {
		at, kind, literal := s.Scan()
		if kind == token.EOF {
			return quoted
		}
		if kind == token.STRING && literal[0] == '`' {
			first := file.Line(at)
			alone := !strings.Contains(literal, "\n")
			if alone && utf8.RuneCountInString(literal) <= longestLine/2 {
				continue // the line can be broken next to it
			}
			for i := range 1 + strings.Count(literal, "\n") {
				quoted[first+i] = true
			}
		}
	}
}

// The check must be able to fail.
func TestLongLinesAreFound(t *testing.T) {
	long := strings.Repeat("é", longestLine-2)
	for name, c := range map[string]struct {
		text string
		isGo bool
		want int
	}{
		"as long as may be":   {"package p\n// " + long[:len(long)-2] + "\n", true, 0},
		"one more":            {"package p\n// " + long + "\n", true, 1},
		"a tag":               {"package p\ntype s struct {\n\tf int `" + long + "`\n}\n", true, 0},
		"a text":              {"package p\nvar s = `\n" + long + long + "\n`\n", true, 0},
		"a little quoted":     {"package p\n// x\nvar s = `x` // " + long + "\n", true, 1},
		"a script":            {"-- " + long + "\n", false, 1},
		"a script's backtick": {"-- `" + long + "`\n", false, 1},
	} {
		if got := tooLong(c.text, c.isGo); len(got) != c.want {
			t.Errorf("%s: lines %v, want %d of them", name, got, c.want)
		}
	}
}
