package conformance

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// What holds in every case. The mutex is held in all of these.

// headers holds those of a request.
func (s *server) headers(r *http.Request, x *exchange) {
	if !strings.Contains(r.Header.Get("User-Agent"), "lubdub-") {
		s.violate("%s: the SDK does not name itself: User-Agent %q", x.call, r.Header.Get("User-Agent"))
	}
	if got := r.Header.Get("Accept"); got != "application/json" {
		s.violate("%s: Accept %q", x.call, got)
	}
	if got := r.Header.Get("Content-Type"); len(x.body) > 0 && got != "application/json" {
		s.violate("%s: Content-Type %q", x.call, got)
	}
}

// arrive holds a request against those before it.
func (s *server) arrive(x *exchange) {
	s.keepsPauses(x)
	s.usesNewToken(x)
	switch x.call {
	case "register":
		s.repeats(x, "registrationId")
	case "claim":
		s.repeats(x, "claimId")
		s.isNotGreedy(x)
	case "beat":
		s.beatsAlone(x)
		s.listsAll(x)
		s.keepsDeltas(x)
		s.isSilentOf(x)
	case "exchange":
		s.beatsAlone(x)
	case "heartbeat", "heartbeats":
		s.isSilentOf(x)
	case "completed":
		s.repeatsCompletion(x)
	}
}

// before is the newest exchange of a call, of a task where it is one's; nil: there was none.
func (s *server) before(x *exchange) *exchange {
	for _, old := range slices.Backward(s.exchanges) {
		if old.call == x.call && old.task == x.task && fieldOf(old.body, "name") == fieldOf(x.body, "name") { // that of a registration
			return old
		}
	}
	return nil
}

// keepsPauses holds that Retry-After is kept: that is a floor, so that no busy machine breaks it. Another exchange has other completions.
func (s *server) keepsPauses(x *exchange) {
	old := s.before(x)
	if old == nil || x.call == "exchange" || old.rule == nil || !old.known() || old.rule.RetryAfter == 0 {
		return
	}
	retryAfter := time.Duration(old.rule.RetryAfter) * time.Second
	if paused := x.at.Sub(old.answered); paused < retryAfter-5*time.Millisecond {
		s.violate("%s was answered with Retry-After %v, and came again after %v", x.call, retryAfter, paused)
	}
}

// usesNewToken holds that a new token takes the old one's place: what was under way when it came may have the old one.
func (s *server) usesNewToken(x *exchange) {
	old := func(token, newest string) bool {
		cut := strings.LastIndexByte(newest, '-') + 1
		return token != newest && strings.HasPrefix(token, newest[:cut])
	}
	for _, t := range s.tasks {
		if t.number > 1 && (old(x.token, t.token()) || bytes.Contains(x.body, []byte(`"task-`+t.id+`-`)) &&
			!bytes.Contains(x.body, []byte(`"`+t.token()+`"`))) {
			if t.stale++; t.stale > 1 {
				s.violate("%s: the old token of task %s is still used", x.call, t.id)
			}
		}
	}
	if w := s.workers[s.current]; w != nil && w.number > 1 && old(x.token, w.token()) {
		if n := s.staleOf(w); n > 2 {
			s.violate("%s: the worker's old token is still used", x.call)
		}
	}
}

// staleOf counts the requests with the token before the newest one, after the newest was sent.
func (s *server) staleOf(w *workerState) (n int) {
	for _, x := range s.exchanges {
		if x.within == nil && x.at.After(w.renewedAt) && x.token == (&workerState{id: w.id, number: w.number - 1}).token() {
			n++
		}
	}
	return n
}

// repeats holds that a call which was not answered comes again under its id, and one that was under another.
func (s *server) repeats(x *exchange, field string) {
	old := s.before(x)
	id := fieldOf(x.body, field)
	if id == "" {
		s.violate("%s has no %s", x.call, field)
		return
	}
	if old == nil || (x.call == "claim" && old.token != x.token) {
		return
	}
	was := fieldOf(old.body, field)
	answered := old.known() && old.status < 300
	switch {
	case answered && id == was:
		s.violate("%s was answered and comes again under the same %s", x.call, field)
	case !answered && (!old.known() || old.status >= 500) && id != was:
		s.violate("%s was not answered and comes again under another %s", x.call, field)
	}
}

func fieldOf(body []byte, field string) string {
	var fields map[string]any
	_ = json.Unmarshal(body, &fields)
	text, _ := fields[field].(string)
	return text
}

// isNotGreedy holds that a claim requests no more than is free.
func (s *server) isNotGreedy(x *exchange) {
	if old := s.before(x); old != nil && fieldOf(old.body, "claimId") == fieldOf(x.body, "claimId") {
		return // a repeat
	}
	var r v1.ClaimRequest
	_ = json.Unmarshal(x.body, &r)
	held, most := 0, 1
	for _, t := range s.tasks {
		if t.assigned && t.started && !t.over() && t.ending == nil {
			held++
		}
	}
	if r.Max != nil {
		most = *r.Max
	}
	if most > s.With.Concurrency-held {
		s.violate("a claim requests %d, and of %d places %d are taken", most, s.With.Concurrency, held)
	}
}

// beatsAlone holds that there is one beat, and one exchange, under way at a time.
func (s *server) beatsAlone(x *exchange) {
	old := s.before(x)
	if old == nil || old.known() || old.worker != x.worker {
		return
	}
	select {
	case <-old.clientDone:
	default:
		s.violate("two calls of %s of a worker are under way at a time", x.call)
	}
}

// listsAll holds that an inventory is complete: what has started is in one of two beats in a row. A beat without one leaves nothing out,
// and is for the time while completions are not answered: what two inventories leave out, and whose completion was not applied, is lost.
func (s *server) listsAll(x *exchange) {
	if !bytes.Contains(x.body, []byte(`"tasks"`)) {
		return
	}
	for _, t := range s.tasks {
		switch {
		case s.Expect.Tasks[t.id].Listed && t.delivered && !t.started && !slices.Contains(x.names, t.id):
			if t.missed++; t.missed == 2 {
				s.violate("two inventories in a row leave out task %s, which a claim was given: it is lost by that", t.id)
			}
		case slices.Contains(x.names, t.id) || !t.started || t.ending != nil || t.endReported || (t.completing && !t.waits()) || s.Task != nil ||
			s.With.Lease == "strict": // whose attempts may have ended on the runner's side
			t.missed = 0
		default:
			if t.missed++; t.missed != 2 {
				break
			}
			if t.unlisted = x.at; t.waits() {
				s.violate("two inventories in a row leave out task %s, whose completion was sent and not accepted: the task is lost", t.id)
			}
		}
	}
}

// heldUnlisted are the tasks that were at work when two beats in a row did not list them. A task whose handler has returned is not at work:
// its completion is on its way, and may take longer than some beats; and the runner reports it on another way than its beats.
func (p *play) heldUnlisted() (problems []string) {
	for _, t := range p.tasks {
		if t.unlisted.IsZero() {
			continue
		}
		returned := p.process.seen("returned", t.id, "")
		if len(returned) == 0 || returned[0].at.After(t.unlisted.Add(time.Second)) {
			problems = append(problems, "two beats in a row do not list task "+t.id+", which has started")
		}
	}
	return problems
}

// keepsDeltas holds that unanswered deltas are sent again, under their seq.
func (s *server) keepsDeltas(x *exchange) {
	old := s.before(x)
	if old == nil || old.worker != x.worker || old.known() && old.status < 300 {
		return
	}
	var was, is v1.WorkerHeartbeatRequest
	_, _ = json.Unmarshal(old.body, &was), json.Unmarshal(x.body, &is)
	if was.Seq == nil || is.Seq == nil {
		return
	}
	if *is.Seq < *was.Seq {
		s.violate("seq was %d and is %d", *was.Seq, *is.Seq)
	}
	if (was.CompletedDelta != 0 || was.FailedDelta != 0) && *is.Seq != *was.Seq {
		s.violate("seq %d was not answered, and what it had counted comes again as %d", *was.Seq, *is.Seq)
	}
}

// isSilentOf holds that no beat names an attempt that is over.
func (s *server) isSilentOf(x *exchange) {
	for _, id := range x.names {
		t := s.tasks[id]
		switch {
		case t == nil:
			s.violate("a beat names task %s, which was not handed out", id)
		case t.completing:
			s.violate("a beat names task %s after its completion was sent", id)
		case t.endReported:
			s.violate("a beat names task %s after an answer has ended it", id)
		}
	}
}

// repeatsCompletion holds that a completion comes again as it was.
func (s *server) repeatsCompletion(x *exchange) {
	t := s.tasks[x.task]
	if t == nil {
		s.violate("a completion is of task %s, which was not handed out", x.task)
		return
	}
	s.sharesOnce(x)
	if t.missed > 2 && !t.completing { // one may have been under way when the task was claimed
		s.violate("%d inventories in a row leave out task %s before its completion was sent", t.missed, t.id)
	}
	if t.arrived++; t.arrived > 1 && !bytes.Equal(t.completion, x.body) {
		s.violate("the completion of task %s is repeated as another: %s, then %s", t.id, t.completion, x.body)
	}
	t.completing, t.completion = true, x.body
}

// depart applies what an answer reported.
func (s *server) depart(x *exchange, a *reply) {
	good := a.status < 300
	accepted := func(id string) {
		if t := s.tasks[id]; t != nil {
			t.accepted++
		}
	}
	switch body := a.body.(type) {
	case v1.ClaimResponse:
		for _, e := range body.Tasks {
			t := s.tasks[e.TaskID]
			t.delivered, t.started = true, t.started || e.State == v1.Running
		}
	case v1.StartedResponse:
		if t := s.tasks[x.task]; t != nil {
			t.started = true
		}
	case v1.WorkerHeartbeatResponse:
		lost := map[string]bool{}
		for _, l := range body.LostTasks {
			lost[l.TaskID] = true
			s.tasks[l.TaskID].endReported = true
		}
		for _, id := range x.names {
			if !lost[id] {
				accepted(id)
			}
		}
		if body.WorkerToken != "" {
			s.workers[x.worker].renewedAt = time.Now()
		}
	case v1.HeartbeatResponse:
		accepted(x.task)
	case v1.HeartbeatsResponse:
		for _, item := range body.Results {
			if item.Status == http.StatusOK {
				accepted(item.TaskID)
			} else if ends(item.Error) {
				s.tasks[item.TaskID].endReported = true
			}
		}
	case v1.Error:
		if t := s.tasks[x.task]; t != nil && !good && x.call == "heartbeat" && ends(body.Error) {
			t.endReported = true
		}
	}
}

// ends reports whether a refusal ends an attempt.
func ends(code string) bool {
	return code == v1.CodeAttemptMismatch || code == v1.CodeTaskAlreadyTerminal || code == v1.CodeTaskExpired
}
