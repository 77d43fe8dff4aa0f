package events_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// Every type that scripts write is known to filters, and vice versa.
func TestAllTypesOfEventsAreKnown(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../lua/*/*.lua")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	written, scoped := map[string]bool{}, map[string]bool{}
	for _, outcome := range []string{"succeeded", "failed", "cancelled"} { // of complete.lua
		written["task."+outcome] = true
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`'((?:task|worker|machine|schedule|queue|webhook|token|system)\.[a-z_]+)'`).FindAllSubmatch(text, -1) {
			written[string(m[1])] = true
		}
		for _, m := range regexp.MustCompile(`write_event\([^,]+, '([a-z_.]+)', {(}?)`).FindAllSubmatch(text, -1) {
			if len(m[2]) == 0 {
				scoped[string(m[1])] = true
			} else if kind := string(m[1]); !slices.Contains(model.WithoutScope, kind) && kind != "system.repaired" {
				t.Errorf("%s is published without a scope, and model.WithoutScope does not know it", kind)
			}
		}
	}
	for kind := range written {
		if !slices.Contains(model.EventTypes, kind) {
			t.Errorf("%s is published, and model.EventTypes does not know it", kind)
		}
	}
	for _, kind := range model.WithoutScope {
		if scoped[kind] || !written[kind] {
			t.Errorf("%s has a scope, and is in model.WithoutScope", kind)
		}
	}
	for _, kind := range model.EventTypes {
		if !written[kind] {
			t.Errorf("nothing publishes %s", kind)
		}
	}
}
