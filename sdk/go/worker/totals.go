package worker

import v1 "github.com/lubdub-io/lubdub/sdk/go/v1"

// totals counts the completed and failed tasks for beats: each beat adds what is new since the last one that was answered. The worker's
// mutex guards it.
type totals struct {
	completed, failed int64 // since the last delta
	seq               int64 // of the last delta
	unanswered        *delta
}

// delta is what one beat adds. It keeps its number and counts until it is answered.
type delta struct{ seq, completed, failed int64 }

func (t *totals) count(end v1.State) {
	switch end {
	case v1.Succeeded:
		t.completed++
	case v1.Failed:
		t.failed++
	}
}

// next returns the delta of the next beat.
func (t *totals) next() *delta {
	if t.unanswered == nil {
		t.seq++
		t.unanswered = &delta{t.seq, t.completed, t.failed}
		t.completed, t.failed = 0, 0
	}
	return t.unanswered
}

func (t *totals) answered(seq int64) {
	if t.unanswered != nil && t.unanswered.seq == seq {
		t.unanswered = nil
	}
}

// restart begins the numbers of a new registration. An unanswered delta was refused with the old one, and so not counted.
func (t *totals) restart() {
	t.seq = 0
	if d := t.unanswered; d != nil {
		t.completed, t.failed, t.unanswered = t.completed+d.completed, t.failed+d.failed, nil
	}
}
