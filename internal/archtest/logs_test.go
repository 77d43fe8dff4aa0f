package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// logLine is a line that the program may write to its log, as the source or docs/operations.md has it.
type logLine struct {
	where, level string
	message      string // up to its advice, which follows a semicolon or a colon
	fields       []string
}

// logSource is one file that may log.
type logSource struct {
	path   string
	file   *ast.File
	consts map[string]string // of all files
}

// readLogSources parses everything of which the program is made.
func readLogSources(t *testing.T) (all []*logSource) {
	t.Helper()
	consts := map[string]string{}
	helpers := regexp.MustCompile(`^(tracker/trackertest|internal/(redistest|faultproxy|fleet|archtest|e2e|storedtest|tlstest))/|_test\.go$`)
	for _, root := range []string{"api", "tracker", "cmd", "internal"} {
		err := filepath.WalkDir("../../"+root, func(path string, _ fs.DirEntry, err error) error {
			name, _ := filepath.Rel("../..", path)
			if err != nil || filepath.Ext(path) != ".go" || helpers.MatchString(filepath.ToSlash(name)) {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			collectConsts(file, consts)
			all = append(all, &logSource{path: name, file: file, consts: consts})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func collectConsts(file *ast.File, consts map[string]string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == len(spec.Names) {
			for i, name := range spec.Names {
				if text, ok := textOf(spec.Values[i], consts); ok {
					consts[name.Name] = text
				}
			}
		}
		return true
	})
}

// textOf is the text of an expression of literals and constants; of a formatted one the format.
func textOf(e ast.Expr, consts map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		a, isA := textOf(e.X, consts)
		b, isB := textOf(e.Y, consts)
		return a + b, isA && isB && e.Op == token.ADD
	case *ast.Ident:
		text, ok := consts[e.Name]
		return text, ok
	case *ast.SelectorExpr:
		return textOf(e.Sel, consts)
	case *ast.CallExpr:
		if of, ok := e.Fun.(*ast.SelectorExpr); ok && of.Sel.Name == "Sprintf" {
			return textOf(e.Args[0], consts)
		}
	}
	return "", false
}

// lines returns what a file may log; lines for developers aside.
func (s *logSource) lines(t *testing.T) (all []logLine) {
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			level, args := logCall(call)
			if level == "" || level == "DEBUG" {
				return true
			}
			messages := s.messages(args[0], f)
			if len(messages) == 0 {
				t.Errorf("%s: a log message is no constant, so that it cannot be looked up", s.path)
			}
			fields := fieldsOf(args[1:])
			if call.Ellipsis.IsValid() {
				fields = fieldsOf([]ast.Expr{&ast.FuncLit{Type: f.Type, Body: f.Body}})
			}
			for _, m := range messages {
				all = append(all, logLine{where: s.path, level: level, message: m, fields: fields})
			}
			return true
		})
	}
	return all
}

// logCall returns the level of a call that logs, and its arguments from the message on.
func logCall(call *ast.CallExpr) (level string, args []ast.Expr) {
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"log", "Logger"}, lastName(of.X)) {
		return "", nil
	}
	switch of.Sel.Name {
	case "Debug", "Info", "Warn", "Error":
		return strings.ToUpper(of.Sel.Name), call.Args
	case "LogAttrs":
		return strings.ToUpper(strings.TrimPrefix(lastName(call.Args[1]), "Level")), call.Args[2:]
	}
	return "", nil
}

func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// messages returns a message up to its advice; for a variable, all that its function may assign to it.
func (s *logSource) messages(e ast.Expr, f *ast.FuncDecl) (all []string) {
	if text, ok := textOf(e, s.consts); ok {
		return []string{upToAdvice(text)}
	}
	of, ok := e.(*ast.Ident)
	if !ok {
		return nil
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == 1 && lastName(a.Lhs[0]) == of.Name {
			if text, ok := textOf(a.Rhs[0], s.consts); ok {
				all = append(all, upToAdvice(text))
			}
		}
		return true
	})
	return all
}

func upToAdvice(message string) string {
	return strings.TrimSpace(message[:strings.IndexAny(message+";", ";:(")])
}

// fieldsOf returns the names of a line's fields as a JSON log has them; of a scope there are two.
func fieldsOf(args []ast.Expr) (names []string) {
	for i := 0; i < len(args); i++ {
		if text, ok := textOf(args[i], nil); ok { // a name, and its value
			names = append(names, text)
			i++
			continue
		}
		ast.Inspect(args[i], func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			of, ok := call.Fun.(*ast.SelectorExpr)
			switch {
			case !ok:
			case of.Sel.Name == "LogAttr":
				names = append(names, "tenantId", "workspaceId")
			case lastName(of.X) == "slog" && len(call.Args) == 2:
				if text, ok := textOf(call.Args[0], nil); ok {
					names = append(names, text+map[bool]string{true: "Ms"}[of.Sel.Name == "Duration"])
				}
			}
			return true
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Each thing has one name in the log, the one that it has on the wire.
func TestLogFieldNamesAreConsistent(t *testing.T) {
	t.Parallel()
	camel := regexp.MustCompile(`^[a-z][a-z0-9]*([A-Z][a-z0-9]+)*$`)
	wire := map[string]string{
		"task": "taskId", "worker": "workerId", "machine": "machineId", "schedule": "scheduleId", "webhook": "webhookId",
		"scope": "Scope.LogAttr", "tenant": "Scope.LogAttr", "workspace": "Scope.LogAttr", "request": "requestId", "run": "runId",
		"err": "error", "cause": "error", "suppressed": "moreNotLogged", "who": "by", "actor": "by",
	}
	for _, source := range readLogSources(t) {
		for _, line := range source.lines(t) {
			for _, name := range line.fields {
				if instead := wire[name]; instead != "" || !camel.MatchString(name) {
					t.Errorf("%s: %q has the field %q; names are the wire's, such as taskId, and durations slog.Duration %s",
						line.where, line.message, name, instead)
				}
			}
		}
	}
}

// documentedLines reads the table of docs/operations.md.
func documentedLines(t *testing.T) (all []logLine) {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	_, section, _ := strings.Cut(string(text), "\n## The log\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 4 || !slices.Contains([]string{"ERROR", "WARN", "INFO"}, cells[0]) {
			continue
		}
		is := logLine{where: "docs/operations.md", level: cells[0], message: strings.Trim(cells[1], "`")}
		for _, name := range quoted.FindAllStringSubmatch(cells[2], -1) {
			is.fields = append(is.fields, name[1])
		}
		if strings.Contains(cells[2], "scope") {
			is.fields = append(is.fields, "tenantId", "workspaceId")
		}
		slices.Sort(is.fields)
		all = append(all, is)
	}
	return all
}

// The document has every line that an operator may meet, with its level and fields, and no other.
func TestEveryLineOfTheLogIsDocumented(t *testing.T) {
	t.Parallel()
	documented := map[string]logLine{}
	for _, line := range documentedLines(t) {
		if _, twice := documented[line.message]; twice {
			t.Errorf("docs/operations.md has %q twice", line.message)
		}
		documented[line.message] = line
	}
	met := map[string]bool{}
	for _, source := range readLogSources(t) {
		for _, line := range source.lines(t) {
			is, ok := documented[line.message]
			met[line.message] = true
			switch {
			case !ok:
				t.Errorf("docs/operations.md, The log, lacks %s %q of %s, %q", line.level, line.message, line.where, line.fields)
			case is.level != line.level:
				t.Errorf("%q is logged as %s, and documented as %s", line.message, line.level, is.level)
			case !slices.Equal(is.fields, line.fields):
				t.Errorf("%q has the fields %q, and is documented with %q", line.message, line.fields, is.fields)
			}
		}
	}
	for message := range documented {
		if !met[message] {
			t.Errorf("docs/operations.md has %q, which nothing logs", message)
		}
	}
	if len(met) < 30 {
		t.Errorf("only %d lines were found in the source", len(met))
	}
}
