package workers

import (
	"slices"
	"time"

	"github.com/lubdub-io/lubdub/tracker/model"
)

// WorkerFilter chooses workers of one scope. Zero fields do not filter.
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
	SilentFor   time.Duration // in shard time, or never heard

	Sort       WorkerSort
	Descending bool   // the other way round
	PageSize   int    // 1 to 100
	After      string // Next of the page before; empty: from the start

	withMachine bool // they are taken offline with their machine, whose hold covers them
}

// WorkerSort is what the order of a list of workers goes by.
type WorkerSort string

// The orders of lists of workers. Those that are the same in it follow each other as they registered.
const (
	ByRegistration  WorkerSort = ""
	ByLastHeartbeat WorkerSort = "lastHeartbeatAt"
	ByStaleCount    WorkerSort = "staleCount24h"
	ByUptime        WorkerSort = "uptimePct24h"
)

// WorkerPage is one page of a list.
type WorkerPage struct {
	Workers []*model.Worker
	Next    string // give it as After for the next page; empty: this was the last
	Total   int    // of all pages
}

// maxWorkers bounds how many workers of one scope are examined. Beyond that they belong in several workspaces.
const maxWorkers = 100_000

// narrows reports whether the filter asks for more than a scope and a status.
func (f *WorkerFilter) narrows() bool {
	return f.Queue != "" || f.Type != "" || f.Runtime != "" || f.MachineID != "" || f.Name != "" || f.Version != "" || len(f.Labels) > 0 ||
		f.Liveness != "" || f.Schedulable != nil || f.Flapping != nil || f.SilentFor > 0
}

// matches reports whether a worker has what the filter asks for, apart from being schedulable or flapping, which take counts.
func (f *WorkerFilter) matches(w *model.Worker) bool {
	return (len(f.Statuses) == 0 || slices.Contains(f.Statuses, w.Status)) && (f.Queue == "" || w.Queue == f.Queue) &&
		(f.Type == "" || slices.Contains(w.Types, f.Type)) && (f.Runtime == "" || slices.Contains(w.Runtimes, f.Runtime)) &&
		(f.MachineID == "" || w.MachineID == f.MachineID) && (f.Name == "" || w.Name == f.Name) && (f.Version == "" || w.Version == f.Version) &&
		model.HasLabels(w.Labels, f.Labels) && (f.Liveness == "" || w.Liveness == f.Liveness) &&
		(w.Silent >= f.SilentFor || w.LastHeartbeatAt.IsZero())
}
