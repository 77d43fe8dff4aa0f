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

// sentence finds prose and titles of columns; other single words are names.
var sentence = regexp.MustCompile(`[A-Za-z]{2}[,.;:]? [A-Za-z]|^["']?[A-Z][A-Za-z]+["']?$`)

var inserted = regexp.MustCompile(`\$?\{[^{}]*\}`) // expressions in TypeScript's and Python's strings

// add stores a text that starts at a line.
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
	".rs":   {regexp.MustCompile(`(//[^\n]*)|("(?:[^"\\]|\\.)*")`)},
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
	cmd := exec.Command("git", "ls-files", "api", "cmd", "deploy", "examples", "internal", "lua", "sdk", "tracker", "ui/src", "bench")
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
		var p prose
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

// The linter must be able to fail: every kind of text arrives on the line of its source.
func TestProseKeepsLines(t *testing.T) {
	for name, of := range map[string]struct {
		got  prose
		line int
	}{
		"log message":  {goProse(t, []byte("package p\n\nfunc f() {\n\tlog.Warn(\"Nobody was told\", \"id\", id)\n}\n")), 4},
		"finding":      {goProse(t, []byte("package p\n\nvar a = v(\"Nobody \" +\n\t\"was \" + told(x) + \"told\")\n")), 3},
		"help":         {goProse(t, []byte("package p\n\ntype c struct {\n\tLs l `cmd:\"\" help:\"Nobody was told.\"`\n}\n")), 4},
		"OpenAPI":      {textProse(".json", []byte("{\n \"description\": \"Nobody was told\"\n}")), 2},
		"alert":        {textProse(".yml", []byte("alerts:\n  summary: Nobody was told\n")), 2},
		"script":       {textProse(".lua", []byte("-- Nobody's\nreturn 'Nobody was told'\n")), 2},
		"SDK":          {textProse(".py", []byte("# nobody's\nlog.warn(f\"Nobody {told} was told\")\n")), 2},
		"SDK template": {textProse(".ts", []byte("// nobody's\nlog(`Nobody ${told} was told`)\n")), 2},
		"dashboard":    {textProse(".tsx", []byte("<p>\n  Nobody was told\n</p>")), 2},
	} {
		if len(of.got) != 1 || !strings.Contains(strings.Join(of.got[of.line], ""), "Nobody ") {
			t.Errorf("%s: %v, want it on line %d", name, of.got, of.line)
		}
	}
}

// Vale accepts the glossary's terms and no others.
func TestValeKnowsTheGlossary(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var terms strings.Builder
	for _, row := range regexp.MustCompile(`(?m)^\| \*\*([^*]*)`).FindAllStringSubmatch(read("docs/glossary.md"), -1) {
		terms.WriteString(row[1] + "\n")
	}
	if accepted := read(".vale/config/vocabularies/Lubdub/accept.txt"); terms.String() != accepted {
		t.Errorf("the vocabulary has\n%s\nthe glossary\n%s", accepted, terms.String())
	}
}
