package workers

import (
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// WorkerFilter selects workers of one scope. Zero fields do not filter.
type WorkerFilter struct {
	Scope       model.Scope
	Queue       string
	Statuses    []model.WorkerStatus // none: all
	Type        string
	Runtime     string
	MachineID   string
	Name        string
	Version     string
	Labels      map[string]string
	Liveness    model.Liveness
	Schedulable *bool
	Flapping    *bool
	SilentFor   time.Duration // minimum silence in shard time; also matches workers without a recorded heartbeat

	Sort       WorkerSort
	Descending bool   // reverses the order
	PageSize   int    // 1 to 100
	After      string // Next of the previous page; empty: from the start

	withMachine bool // the workers go OFFLINE with their machine, whose hold covers them
}

// WorkerSort is the sort key of a list of workers.
type WorkerSort string

// The sort keys of lists of workers. Equal workers are in the order of their registrations.
const (
	ByRegistration  WorkerSort = ""
	ByLastHeartbeat WorkerSort = "lastHeartbeatAt"
	ByStaleCount    WorkerSort = "staleCount24h"
	ByUptime        WorkerSort = "uptimePct24h"
)

// WorkerPage is one page of a list.
type WorkerPage struct {
	Workers []*model.Worker
	Next    string // After for the next page; empty: this is the last one
	Total   int    // on all pages
}

// maxWorkers bounds how many workers of one scope are examined; larger fleets belong in several workspaces.
const maxWorkers = 100_000

// narrows reports whether the filter has more than a scope and statuses.
func (f *WorkerFilter) narrows() bool {
	return f.Queue != "" || f.Type != "" || f.Runtime != "" || f.MachineID != "" || f.Name != "" || f.Version != "" || len(f.Labels) > 0 ||
		f.Liveness != "" || f.Schedulable != nil || f.Flapping != nil || f.SilentFor > 0
}

// matches reports whether a worker matches the filter, except for schedulable and flapping, which need counts.
func (f *WorkerFilter) matches(w *model.Worker) bool {
	return (len(f.Statuses) == 0 || slices.Contains(f.Statuses, w.Status)) && (f.Queue == "" || w.Queue == f.Queue) &&
		(f.Type == "" || slices.Contains(w.Types, f.Type)) && (f.Runtime == "" || slices.Contains(w.Runtimes, f.Runtime)) &&
		(f.MachineID == "" || w.MachineID == f.MachineID) && (f.Name == "" || w.Name == f.Name) && (f.Version == "" || w.Version == f.Version) &&
		model.HasLabels(w.Labels, f.Labels) && (f.Liveness == "" || w.Liveness == f.Liveness) &&
		(w.Silent >= f.SilentFor || w.LastHeartbeatAt.IsZero())
}
