package model_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// The documentation contains only values of statusReason and endReason that the server sends.
func TestDocumentedWorkerReasonsAreSent(t *testing.T) {
	sent := []model.WorkerReason{model.WorkerStale, model.WorkerSuperseded, model.WorkerDeregistered, model.WorkerDrained,
		model.WorkerDrainDeadline, model.WorkerForced}
	named := regexp.MustCompile("`?(?:statusReason|endReason)`?[: ]+`?\"?([A-Z][A-Z_]+)\\b")
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			found++
			if !slices.Contains(sent, model.WorkerReason(m[1])) {
				t.Errorf("%s names the reason %s, which the server never sends; it sends %v", file, m[1], sent)
			}
		}
	}
	if found == 0 {
		t.Error("no page names a reason")
	}
}
