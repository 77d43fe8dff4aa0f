package archtest

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var proseDir = flag.String("prose", "", "write the texts that users see into this folder, for Vale")

// prose collects the texts of one source file by line.
type prose map[int][]string

var sentence = regexp.MustCompile(`[A-Za-z]{2}[,.;:]? [A-Za-z]`)

var inserted = regexp.MustCompile(`\$?\{[^{}]*\}`) // expressions in TypeScript's and Python's strings

// add stores a text that starts at a line. Single words are names, not prose.
func (p prose) add(line int, text string) {
	text = inserted.ReplaceAllString(text, "%v")
	if sentence.MatchString(text) {
		p[line] = append(p[line], strings.Join(strings.Fields(text), " "))
	}
}

// file is a text with each sentence on the line where its source has it, so that Vale reports the line of the source.
func (p prose) file() string {
	var lines []string
	for line, texts := range p {
		lines = append(lines, make([]string, max(0, line-len(lines)))...)
		lines[line-1] = strings.Join(texts, " | ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// goProse has the string literals of a Go file: messages, help in struct tags, findings, errors. Those of a sum are one text.
func goProse(t *testing.T, source []byte) prose {
	t.Helper()
	fset, p := token.NewFileSet(), prose{}
	file, err := parser.ParseFile(fset, "", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	var visit func(ast.Node) bool
	var sum func(ast.Expr) string
	sum = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
				return text
			}
		case *ast.BinaryExpr:
			if e.Op == token.ADD {
				return sum(e.X) + sum(e.Y)
			}
		}
		ast.Inspect(e, visit)
		return "%v"
	}
	visit = func(n ast.Node) bool {
		line := func() int { return fset.Position(n.Pos()).Line }
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BinaryExpr:
			if n.Op == token.ADD {
				p.add(line(), sum(n))
				return false
			}
		case *ast.BasicLit:
			if strings.HasPrefix(n.Value, "`") {
				for i, text := range strings.Split(n.Value, "\n") {
					p.add(line()+i, text)
				}
			} else if n.Kind == token.STRING {
				p.add(line(), sum(n))
			}
		}
		return true
	}
	ast.Inspect(file, visit)
	return p
}

const quoted = `"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`

// texts are the parts of other languages that users see: the second group, after comments, which the first matches.
var texts = map[string][]*regexp.Regexp{
	".json": {regexp.MustCompile(`()"(?:summary|description|title)": ("(?:[^"\\]|\\.)*")`)},
	".yml":  {regexp.MustCompile(`()(?m)^ *(?:summary|description): (.*)$`)},
	".lua":  {regexp.MustCompile(`(--[^\n]*)|(` + quoted + `)`)},
	".py":   {regexp.MustCompile(`(#[^\n]*)|("""[\s\S]*?"""|` + quoted + `)`)},
	".ts":   {regexp.MustCompile(`(//[^\n]*|/\*[\s\S]*?\*/)|(` + quoted + "|`(?:[^`\\\\]|\\\\.)*`)")},
	".html": {regexp.MustCompile(`()>([^<>]*)<`)},
}

// markup is text between the elements and expressions of a .tsx file.
var markup = regexp.MustCompile(`()[>}]([^<>{}()=;|&]*)[<{]`)

func textProse(extension string, source []byte) prose {
	p := prose{}
	patterns := texts[extension]
	if extension == ".tsx" {
		patterns = append(slices.Clone(texts[".ts"]), markup)
	}
	for _, pattern := range patterns {
		for _, at := range pattern.FindAllSubmatchIndex(source, -1) {
			if at[4] < 0 {
				continue
			}
			before := strings.Count(string(source[:at[4]]), "\n")
			for i, text := range strings.Split(string(source[at[4]:at[5]]), "\n") {
				p.add(before+i+1, text)
			}
		}
	}
	return p
}

// TestProse extracts the texts that users see, for `make lint-prose`.
func TestProse(t *testing.T) {
	if *proseDir == "" {
		t.Skip("no -prose")
	}
	cmd := exec.Command("git", "ls-files", "api", "cmd", "deploy", "internal", "lua", "sdk", "tracker", "ui/src", "bench")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(*proseDir); err != nil {
		t.Fatal(err)
	}
	tests := regexp.MustCompile(`^bench/results/|_test\.go$|_test\.yml$|(^|/)(testdata|tests?|e2e|node_modules)/|package(-lock)?\.json$`)
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		if tests.MatchString(name) {
			continue
		}
		source, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		p := prose{}
		if extension := filepath.Ext(name); extension == ".go" {
			p = goProse(t, source)
		} else {
			p = textProse(extension, source)
		}
		if len(p) == 0 {
			continue
		}
		path := filepath.Join(*proseDir, name+".txt")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(p.file()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
