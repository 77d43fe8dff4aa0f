package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	named   = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9_]*)`")
	defined = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9_]*)\(`)
	fatal   = regexp.MustCompile(`log\.Fatal[fln]*\((\w+\.)?(Run|RunUntilSignal)\(`)
	linked  = regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`)
)

// Documents name tests as proofs and link to each other: both must be there. Their examples end well after a clean stop.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	tests, documents := map[string]bool{}, map[string]string{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".md") {
			return nil
		}
		text, err := os.ReadFile(path)
		if strings.HasSuffix(path, ".md") {
			documents[path] = string(text)
		}
		for _, m := range defined.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(tests) < 100 || len(documents) < 10 {
		t.Fatalf("only %d tests and %d documents were found", len(tests), len(documents))
	}
	for path, text := range documents {
		if fatal.MatchString(text) {
			t.Errorf("%s has an example that exits with 1 after a clean stop: log.Fatal of a nil error", path)
		}
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if !tests[m[1]] {
				t.Errorf("%s names %s, which is no test", path, m[1])
			}
		}
		for _, m := range linked.FindAllStringSubmatch(text, -1) {
			to := path
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(path), m[1])
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			}
			if there, read := documents[to]; read && m[2] != "" && !anchors(there)[m[2]] {
				t.Errorf("%s links to %s%s, and there is no such heading", path, m[1], m[2])
			}
		}
	}
}

// anchors are where a document's headings can be linked to, as GitHub makes them.
func anchors(text string) map[string]bool {
	all, fenced := map[string]bool{}, false
	for line := range strings.Lines(text) {
		fenced = fenced != strings.HasPrefix(line, "```")
		title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if fenced || !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		all["#"+strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(title))] = true
	}
	return all
}

// A decision is cited by its number, so each number is one decision's, in the file's name and in its title.
func TestDecisionsHaveNumbersOfTheirOwn(t *testing.T) {
	files, err := filepath.Glob("../../docs/adr/*.md")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d decisions: %v", len(files), err)
	}
	taken := map[string]string{}
	for _, file := range files {
		number, _, _ := strings.Cut(filepath.Base(file), "-")
		if other := taken[number]; other != "" {
			t.Errorf("%s and %s have the same number", other, file)
		}
		taken[number] = file
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if title := "# " + strings.TrimLeft(number, "0") + ". "; !strings.HasPrefix(string(text), title) {
			t.Errorf("%s does not begin with %q", file, title)
		}
	}
}

// What many add to at the same place is merged line by line, which easily leaves an entry there twice.
func TestEntriesAreNotDuplicated(t *testing.T) {
	for _, path := range []string{"../../CHANGELOG.md", "../../docs/reliability.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for section := range strings.SplitSeq(string(text), "\n## ") {
			seen := map[string]bool{}
			for line := range strings.Lines(section) {
				about := strings.Join(named.FindAllString(line, -1), " ") // a row is about the tests that it names
				if strings.HasPrefix(line, "- ") {
					about = line
				}
				if about != "" && seen[about] {
					t.Errorf("%s has twice: %s", path, line)
				}
				seen[about] = true
			}
		}
	}
}
