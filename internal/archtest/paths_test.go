package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var namesFile = regexp.MustCompile("`((?:api|bench|cmd|deploy|docs|internal|lua|sdk|tracker)/[A-Za-z0-9_/.-]+\\.[a-z]+)`")

// Documents name files of the project: each must exist. Decisions and the changelog describe the past.
func TestDocumentsNameFilesThatAreThere(t *testing.T) {
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, document := range append(documents, "../../README.md", "../../CONTRIBUTING.md", "../../bench/README.md") {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range namesFile.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "<") {
				continue
			}
			found++
			if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
				t.Errorf("%s names %s, which is not there", document, m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d names of files were found", found)
	}
}
