package schema

import (
	"strings"
	"testing"

	"github.com/lubdub-io/lubdub/internal/storedtest"
	"github.com/lubdub-io/lubdub/tracker/model"
)

// Parsing a name returns its parts, and no two attempts have the same name.
func FuzzNames(f *testing.F) {
	f.Add("acme", "prod", "task_1", 1, "f3nc")
	f.Add("a", "b", "c.d", 2147483647, "-_-_")
	f.Add("a/b", "#", "1.2#3", 0, "")
	f.Fuzz(func(t *testing.T, tenant, workspace, id string, attempt int, fence string) {
		if !model.ValidID(tenant) || !model.ValidID(workspace) || !model.ValidID(id) || attempt < 1 || strings.ContainsAny(fence, "/#") {
			return
		}
		m := MemberName(model.Scope{Tenant: tenant, Workspace: workspace}, id, attempt, fence)
		scope, task, ok := SplitName(m)
		number, gotFence, ok2 := SplitAttempt(m)
		if !ok || !ok2 || scope != (model.Scope{Tenant: tenant, Workspace: workspace}) || task != id || number != attempt || gotFence != fence {
			t.Fatalf("%q became %+v %q %d %q", m, scope, task, number, gotFence)
		}
	})
}

// Reading any stored bytes ends in a value or an error.
func FuzzStored(f *testing.F) {
	storedtest.Read(f, func(t *testing.T, text string) {
		SplitName(text)
		SplitAttempt(text)
		if c, ok := ParseClass(text); ok && c.Name != text {
			t.Fatalf("class %q became %+v", text, c)
		}
		if e, ok := ParseReady(text, 0); ok && (!strings.HasPrefix(text, e.Class.Name) || e.Text != text) {
			t.Fatalf("entry %q became %+v", text, e)
		}
		UnpackPolicy(text)
		if r := UnpackReport(text); strings.Contains(r.WorkerID, PackSep) {
			t.Fatalf("report %q became %+v", text, r)
		}
	})
}

// A report is the same after packing and unpacking.
func FuzzReport(f *testing.F) {
	f.Add(int64(1736935200000), "w-1", "45.5", `"x"`)
	f.Add(int64(0), "", "", "")
	f.Fuzz(func(t *testing.T, ms int64, worker, pct, message string) {
		if ms < 0 || ms > 1<<52 || worker != "" && !model.ValidID(worker) || strings.ContainsAny(pct+message, "\t") {
			return
		}
		packed := string(AppendReport(nil, ms, []byte(worker), []byte(pct), []byte(message)))
		r := UnpackReport(packed)
		if r.WorkerID != worker || string(r.Progress.Pct) != pct || string(r.Progress.Message) != message || ms > 0 &&
			r.ReportedAt.UnixMilli() != ms {
			t.Fatalf("%q became %+v", packed, r)
		}
	})
}
