//go:build long

package main

import (
	"encoding/json"
	"slices"
	"strings"
)

// workedEvent is what the handler of a strict worker writes about its work.
type workedEvent struct {
	Event       string
	Task        string
	Attempt     int
	Reason      string
	From, Until int64 // ms since the epoch; 0: it did nothing
}

// checkStrict holds that no handler with a strict lease has worked beyond it, by what the handlers themselves have noted: before its
// next attempt began a task's last one had done its last piece of work, whether its worker was cut off, stopped or without a server.
func (s *sdkStage) checkStrict() {
	worked, ended, again := map[string][]workedEvent{}, 0, 0
	for _, w := range s.strictWorkers() {
		for line := range strings.Lines(w.out.String()) {
			var e workedEvent
			if json.Unmarshal([]byte(line), &e) != nil {
				continue // a line that a kill has cut
			}
			switch {
			case e.Event == "worked" && e.Until > 0:
				worked[e.Task] = append(worked[e.Task], e)
			case e.Event == "ended" && e.Reason == "LeaseEnded":
				ended++
			}
		}
	}
	for id, all := range worked {
		slices.SortFunc(all, func(a, b workedEvent) int { return a.Attempt - b.Attempt })
		for i := range all[1:] {
			again++
			if one, next := all[i], all[i+1]; one.Until > next.From {
				s.Errorf("task %s: attempt %d was at work until %d, and attempt %d from %d, which is %d ms before: its lease had ended",
					id, one.Attempt, one.Until, next.Attempt, next.From, one.Until-next.From)
			}
		}
	}
	s.Logf("strict leases: %d tasks worked on, %d handlers stopped by their lease, %d attempts that came after others",
		len(worked), ended, again)
	if s.strictGroups() > 0 && (ended == 0 || again == 0) {
		s.Error("no strict lease has ended, or its task did not continue elsewhere: nothing was shown")
	}
}

func (s *sdkStage) strictGroups() (n int) {
	for _, of := range s.groups {
		if of.strict() {
			n++
		}
	}
	return n
}

// strictWorkers are all that have worked with a strict lease, those that were killed too.
func (s *sdkStage) strictWorkers() (all []*sdkWorker) {
	for _, workers := range s.workers {
		all = append(all, workers...)
	}
	all = append(all, s.past...)
	return slices.DeleteFunc(all, func(w *sdkWorker) bool { return !w.group.strict() })
}
