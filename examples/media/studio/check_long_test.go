//go:build long

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// resized returns a resized clip, computed from its colours.
func resized(clip int) []byte {
	var all bytes.Buffer
	for number := range clipFrames {
		fmt.Fprintf(&all, "P6\n%d %d\n255\n", width/2, height/2)
		for y := 0; y < height; y += 2 {
			for x := 0; x < width; x += 2 {
				a, b := pixel(clip, number, x, y), pixel(clip, number, x+1, y)
				c, d := pixel(clip, number, x, y+1), pixel(clip, number, x+1, y+1)
				for i := range a {
					mean := (float64(a[i]) + float64(b[i]) + float64(c[i]) + float64(d[i])) / 4
					all.WriteByte(byte(math.Floor(mean + 0.5)))
				}
			}
		}
	}
	return all.Bytes()
}

// checkResults checks the line that submit has printed, and the clips as they were published.
func (s *stage) checkResults(line string) {
	s.Helper()
	var results map[string]struct {
		Frames int
		SHA256 string
		Error  string
	}
	if err := json.Unmarshal([]byte(line), &results); err != nil || strings.Count(line, "\n") != 1 {
		s.Fatalf("submit printed %q: %v", line, err)
	}
	if len(results) != clips+1 || !strings.Contains(results["missing"].Error, "404") {
		s.Errorf("%d results, want %d and that of the missing clip with its error: %s", len(results), clips, line)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, clip := range clipNames() {
		want := resized(i + 1)
		sum := sha256.Sum256(want)
		if got := results[clip]; got.Frames != clipFrames || got.SHA256 != hex.EncodeToString(sum[:]) {
			s.Errorf("the result of %s is %+v", clip, got)
		}
		if !bytes.Equal(s.results[clip], want) {
			s.Errorf("%s was published with other bytes", clip)
		}
	}
}

// checkPublished checks that each clip has one idempotency key, that of its task, and is published no earlier than its delay.
func (s *stage) checkPublished() {
	s.Helper()
	published := s.sent()
	if len(published) != clips {
		s.Errorf("%d clips were published, want %d", len(published), clips)
	}
	for _, task := range s.tasks("publish") {
		clip := s.clipOf(task)
		if keys := published[clip]; len(keys) != 1 || keys[task.TaskID] != len(task.History) {
			s.Errorf("%s was published by the keys %v, want that of task %s in each of its %d attempts", clip, keys, task.TaskID, len(task.History))
		}
		if waited := task.History[0].DispatchedAt.Sub(task.CreatedAt.Time); waited < time.Second {
			s.Errorf("the task that publishes %s waited %v, want a second", clip, waited)
		}
	}
}

// checkHistories checks that each attempt that did not succeed has its reason: the service was busy, the clip is missing, or the worker
// was killed or stopped. The freeze of the server ended no attempt.
func (s *stage) checkHistories() {
	s.Helper()
	killed, stopped := s.workerID("killed"), s.workerID("stopped")
	lost := map[string]int{}
	for _, task := range s.tasks("") {
		clip, want := s.clipOf(task), v1.Succeeded
		number, _ := strconv.Atoi(strings.TrimPrefix(clip, "clip-"))
		wantBusy := *task.Type == "fetch" && number%3 == 0 || *task.Type == "publish" && number%4 == 0
		if clip == "missing" {
			want, wantBusy = v1.Failed, false
		}
		if task.State != want {
			s.Errorf("%s of %s is %s", *task.Type, clip, task.State)
		}
		busy := 0
		for i, h := range task.History {
			explained := h.Outcome == string(want) && i == len(task.History)-1
			switch {
			case h.Outcome == "FAILED" && h.WillRetry && bytes.Contains(h.Error, []byte(`"retryAfterMs":1000`)):
				busy++
				explained = true
			case h.Outcome == "LOST" && *h.Reason == "WORKER_LOST" && h.Evidence != nil:
				lost[*h.WorkerID]++
				why := map[string]string{killed: "HEARTBEAT_TIMEOUT", stopped: "DEREGISTERED"}[*h.WorkerID]
				explained = *task.Type == "resize" && h.Evidence.WorkerReason == why
			}
			if !explained {
				s.Errorf("attempt %d of %s of %s ended as %s: %+v", h.Attempt, *task.Type, clip, h.Outcome, h)
			}
		}
		if busy != 0 != wantBusy || busy > 1 {
			s.Errorf("%s of %s was answered %d times that the service is busy, want it: %t", *task.Type, clip, busy, wantBusy)
		}
	}
	if lost[killed] == 0 || lost[stopped] == 0 {
		s.Errorf("attempts lost by worker: %v, want some of %s and of %s", lost, killed, stopped)
	}
}

var resumedAt = regexp.MustCompile(`task (\S+) of \S+: resumed at frame (\d+)`)

// checkFrames checks that resized frames were stored twice only from the frame where the next attempt resumed to that of the faults. It
// resumed where the last stored checkpoint was; a worker that was stopped has stored the last one.
func (s *stage) checkFrames(workers []*process) {
	s.Helper()
	resumed := map[string]int{}
	for _, w := range workers {
		for _, line := range resumedAt.FindAllStringSubmatch(w.read("log"), -1) {
			resumed[line[1]], _ = strconv.Atoi(line[2])
		}
	}
	redone, stopped := 0, s.workerID("stopped")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, task := range s.tasks("resize") {
		clip, from, least := s.clipOf(task), resumed[task.TaskID], storedBefore
		if *task.History[0].WorkerID == stopped {
			least = faultsAt
		}
		if from < least || from > faultsAt {
			s.Errorf("%s resumed at frame %d, want one from %d to %d", clip, from, least, faultsAt)
		}
		for number := range clipFrames {
			want := 1
			if from <= number && number <= faultsAt {
				want = 2
				redone++
			}
			if got := s.puts[file(clip, number)]; got != want {
				s.Errorf("frame %d of %s was stored %d times, want %d: it resumed at frame %d", number, clip, got, want, from)
			}
		}
	}
	s.Logf("%d clips resumed; %d of %d frames were resized twice", len(resumed), redone, clips*clipFrames)
}

// workerID returns the id of the worker with a name.
func (s *stage) workerID(name string) string {
	s.Helper()
	for w, err := range s.client.Workers(s.Context(), client.WorkerQuery{Queue: "media", Name: name}) {
		must(s.T, err)
		return w.WorkerID
	}
	s.Fatalf("there is no worker %s", name)
	return ""
}

// clipOf returns the clip of a task.
func (s *stage) clipOf(task v1.Task) string {
	s.Helper()
	full, err := s.client.GetTask(s.Context(), task.TaskID) // lists have no payloads
	must(s.T, err)
	var payload struct{ Source string }
	must(s.T, json.Unmarshal(full.Payload, &payload))
	return payload.Source[strings.LastIndex(payload.Source, "/")+1:]
}
