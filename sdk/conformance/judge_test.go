package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// evaluate returns how the end differs from what is expected.
func (p *play) evaluate() (problems []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	want := &p.Expect
	if p.process.code != want.Exit {
		wrong("the runner ended with %d, want %d", p.process.code, want.Exit)
	}
	exits := p.process.seen("exit", "", "")
	if len(exits) == 0 && want.Abrupt {
		exits = nil
	} else if len(exits) != 1 {
		wrong("%d exit events", len(exits))
	} else if !slices.Equal(exits[0].Unfinished, want.Unfinished) && len(exits[0].Unfinished)+len(want.Unfinished) > 0 {
		wrong("unfinished are %v, want %v", exits[0].Unfinished, want.Unfinished)
	}
	failures := p.process.seen("error", "", "")
	for _, e := range failures {
		if want.Error == "" || !strings.Contains(e.Message, want.Error) {
			wrong("the runner reports: %s", e.Message)
		}
	}
	if want.Error != "" && len(failures) == 0 {
		wrong("the runner reports no error, want one with %q", want.Error)
	}
	p.checkCreated(wrong)
	p.checkLog(wrong)
	for _, id := range slices.Sorted(maps.Keys(want.Tasks)) {
		for _, problem := range p.checkTask(p.tasks[id], want.Tasks[id]) {
			wrong("task %s: %s", id, problem)
		}
	}
	p.checkCalls(wrong)
	return problems
}

func (p *play) checkCreated(wrong func(string, ...any)) {
	if p.Expect.Created == nil {
		return
	}
	made := p.process.seen("created", "", "")
	if len(made) != 1 {
		wrong("%d created events", len(made))
		return
	}
	if !slices.Equal(made[0].Tasks, p.Expect.Created) {
		wrong("created are %v, want %v", made[0].Tasks, p.Expect.Created)
	}
	if made[0].Drawn > 0 {
		wrong("the SDK wrote %d idempotency keys into the caller's objects", made[0].Drawn)
	}
}

func (p *play) checkLog(wrong func(string, ...any)) {
	lines := strings.Split(strings.TrimSpace(p.process.errs.String()), "\n")
	for _, want := range p.Expect.Log {
		n := 0
		for _, line := range lines {
			has := func(text string) bool { return strings.Contains(strings.ToLower(line), strings.ToLower(text)) }
			if !slices.ContainsFunc(want.Has, func(text string) bool { return !has(text) }) {
				n++
			}
		}
		if n != want.Times {
			wrong("%d lines of the log have all of %q, want %d", n, want.Has, want.Times)
		}
	}
	if most := p.Expect.LogMost; most > 0 && len(lines) > most {
		wrong("the log has %d lines, want %d at most", len(lines), most)
	}
}

func (p *play) checkCalls(wrong func(string, ...any)) {
	want := &p.Expect
	left, last := want.Order, ""
	calls := map[string]int{}
	together := len(want.Together) == 0
	for _, x := range p.exchanges {
		calls[x.call]++
		last = x.call
		name := x.call
		if x.task != "" {
			name += ":" + x.task
		}
		if len(left) > 0 && left[0] == name {
			left = left[1:]
		}
		named := true
		for _, id := range want.Together {
			named = named && slices.Contains(x.names, id)
		}
		together = together || named
	}
	if len(left) > 0 {
		wrong("of %v in this order there was no %v", want.Order, left)
	}
	if want.Last != "" && last != want.Last {
		wrong("the last request is %s, want %s", last, want.Last)
	}
	for name, n := range want.Calls {
		if calls[name] != n {
			wrong("%d calls of %s, want %d", calls[name], name, n)
		}
	}
	if !together {
		wrong("no request names %v together", want.Together)
	}
	if want.Names != nil && !slices.Equal(slices.Sorted(slices.Values(p.names)), want.Names) {
		wrong("workers have registered as %v, want %v", p.names, want.Names)
	}
	if want.Workers != nil && len(p.workers) != *want.Workers {
		wrong("%d workers have registered, want %d", len(p.workers), *want.Workers)
	}
}

func (p *play) checkTask(t *task, want ExpectTask) (problems []string) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	got := t.request
	if want.Never && t.arrived > 0 {
		wrong("a completion was sent: %s", t.completion)
	}
	if want.Outcome != "" && got.Outcome != want.Outcome {
		wrong("outcome %q, want %q", got.Outcome, want.Outcome)
	}
	if want.Completions > 0 && t.arrived != want.Completions {
		wrong("%d completions were sent, want %d", t.arrived, want.Completions)
	}
	same(wrong, "output", want.Output, got.Output)
	same(wrong, "partial progress", want.Partial, got.PartialProgress)
	if want.Phase != got.CancelledDuringPhase {
		wrong("cancelled in phase %q, want %q", got.CancelledDuringPhase, want.Phase)
	}
	e := got.Error
	if e == nil {
		e = &v1.TaskError{}
	}
	if want.Category != "" && e.Category != want.Category {
		wrong("category %q, want %q", e.Category, want.Category)
	}
	if want.Retryable != nil && (e.Retryable == nil || *e.Retryable != *want.Retryable) {
		wrong("retryable is not %v", *want.Retryable)
	}
	sameMs(wrong, "retryAfterMs", want.RetryAfter, e.RetryAfterMs)
	sameMs(wrong, "delayMs", want.DelayMs, got.DelayMs)
	if !strings.Contains(e.Message, want.Message) {
		wrong("the message %q does not contain %q", e.Message, want.Message)
	}
	if want.Stack && e.StackTrace == "" {
		wrong("no stack trace")
	}
	if len(e.StackTrace) > 16<<10 {
		wrong("a stack trace of %d bytes", len(e.StackTrace))
	}
	if t.accepted < want.Accepted {
		wrong("%d beats were accepted, want %d", t.accepted, want.Accepted)
	}
	if last := p.lastBeats(2); want.Silent && slices.Contains(last, t.id) {
		wrong("beats still name it")
	}
	p.checkProgress(wrong, t, want)
	p.checkEvents(wrong, t, want)
	return problems
}

// lastBeats are the tasks that the last n beats name.
func (p *play) lastBeats(n int) (names []string) {
	for _, x := range slices.Backward(p.exchanges) {
		if n == 0 {
			return names
		}
		if strings.HasPrefix(x.call, "heartbeat") || x.call == "beat" {
			names, n = append(names, x.names...), n-1
		}
	}
	return names
}

func (p *play) checkProgress(wrong func(string, ...any), t *task, want ExpectTask) {
	var last []any
	var saw [][]any
	for _, r := range t.progress {
		report := []any{nil, nil}
		if r.ProgressPct != nil {
			report[0] = *r.ProgressPct
		}
		if r.Message != nil {
			report[1] = *r.Message
		}
		last = report
		saw = append(saw, report)
	}
	if want.Progress != nil && !equal(want.Progress, last) {
		wrong("the last progress is %v, want %s", last, want.Progress)
	}
	if want.Details != nil && !equal(want.Details, append([]any{}, t.details...)) {
		wrong("the details are %v, want %s", t.details, want.Details)
	}
	var wanted [][]any
	_ = json.Unmarshal(want.Saw, &wanted)
	for _, w := range wanted {
		if !slices.ContainsFunc(saw, func(one []any) bool { return reflect.DeepEqual(one, w) }) {
			wrong("progress %v was not reported: %v", w, saw)
		}
	}
}

func (p *play) checkEvents(wrong func(string, ...any), t *task, want ExpectTask) {
	begun := p.process.seen("begun", t.id, "")
	if want.Begun != nil && len(begun) != *want.Begun {
		wrong("its handler was begun %d times, want %d", len(begun), *want.Begun)
	}
	if want.BegunWith != nil && (len(begun) == 0 || !holds(begun[0].raw, want.BegunWith)) {
		wrong("it was not begun with %s", want.BegunWith)
	}
	ended := p.process.seen("ended", t.id, "")
	switch {
	case want.Ended == nil:
	case *want.Ended == "" && len(ended) > 0:
		wrong("it was ended: %s", ended[0].raw)
	case *want.Ended != "" && (len(ended) == 0 || ended[0].Reason != *want.Ended):
		wrong("it was not ended as %s: %v", *want.Ended, ended)
	}
	if want.Detail != "" && (len(ended) == 0 || ended[0].Detail != want.Detail) {
		wrong("its end lacks the detail %q", want.Detail)
	}
	if want.Endings > 0 && len(ended) != want.Endings {
		wrong("it was ended %d times, want %d", len(ended), want.Endings)
	}
	settled := p.process.seen("settled", t.id, "")
	if want.Settled != nil && (len(settled) == 0 || !holds(settled[0].raw, want.Settled)) {
		wrong("its handle does not report %s: %v", want.Settled, settled)
	}
}

func same(wrong func(string, ...any), what string, want, got json.RawMessage) {
	var value any
	_ = json.Unmarshal(got, &value)
	if want != nil && !equal(want, value) {
		wrong("%s %s, want %s", what, got, want)
	}
}

func sameMs(wrong func(string, ...any), what string, want, got *int64) {
	if msOf(got) != msOf(want) {
		wrong("%s: sent %d, want %d", what, msOf(got), msOf(want))
	}
}

// msOf returns the value, -1 for none.
func msOf(v *int64) int64 {
	if v == nil {
		return -1
	}
	return *v
}

func equal(want json.RawMessage, got any) bool {
	var value any
	_ = json.Unmarshal(bytes.TrimSpace(want), &value)
	return reflect.DeepEqual(value, got)
}

// holds reports whether a line has all fields that are wanted, with their values.
func holds(line string, want json.RawMessage) bool {
	var has, wanted map[string]any
	_, _ = json.Unmarshal([]byte(line), &has), json.Unmarshal(want, &wanted)
	for name, value := range wanted {
		if !reflect.DeepEqual(has[name], value) {
			return false
		}
	}
	return true
}
