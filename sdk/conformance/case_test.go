package conformance

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"slices"
	"testing"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

//go:embed cases.json
var table []byte

// Case is an entry of the table; README.md explains its fields.
type Case struct {
	Name        string               `json:"name"`
	Description string               `json:"says"`
	Mode        string               `json:"mode"`
	With        With                 `json:"with"`
	Worker      *Rhythm              `json:"worker"`
	Task        *Rhythm              `json:"task"`
	Tasks       map[string]Task      `json:"tasks"`
	Creations   []v1.CreateTasksItem `json:"creations"`
	Answers     []Rule               `json:"answers"`
	Script      []Deed               `json:"script"`
	Expect      Expect               `json:"expect"`
	Break       string               `json:"break"`
}

type With struct {
	URLs          []string `json:"urls"`
	TokenFile     bool     `json:"tokenFile"`
	TLS           bool     `json:"tls"`
	Lease         string   `json:"lease"`
	Concurrency   int      `json:"concurrency"`
	SoftStopMs    int64    `json:"softStopMs"`
	HardStopMs    int64    `json:"hardStopMs"`
	TaskTimeoutMs int64    `json:"taskTimeoutMs"`
	WatchdogMs    int64    `json:"watchdogMs"`
	Default       bool     `json:"default"`
	Workers       int      `json:"workers"`
	Grace         int      `json:"grace"`
	Drained       bool     `json:"drained"`
	Starts        bool     `json:"starts"`   // the server knows claims that start their tasks
	Exchange      bool     `json:"exchange"` // it has exchanges, and says so
}

type Rhythm struct {
	IntervalMs int64 `json:"intervalMs"`
	TimeoutMs  int64 `json:"timeoutMs"`
}

type Task struct {
	Steps        []json.RawMessage `json:"steps"`
	Held         bool              `json:"held"`
	Attempt      int               `json:"attempt"`
	Traceparent  string            `json:"traceparent"`
	LastProgress *v1.Progress      `json:"lastProgress"`
	Cancelled    string            `json:"cancelled"`
	WillRetry    bool              `json:"willRetry"`
	Untyped      bool              `json:"untyped"`
	GraceMs      int64             `json:"graceMs"`
	RunTimeoutMs int64             `json:"runTimeoutMs"`
}

// Rule is how the server answers some calls.
type Rule struct {
	Call       string `json:"call"`
	Task       string `json:"task"`
	Counts     bool   `json:"counts"` // only a worker's heartbeat whose deltas are not zero
	Skip       int    `json:"skip"`
	Times      int    `json:"times"`
	Status     int    `json:"status"`
	Error      string `json:"error"`
	Reason     string `json:"reason"`
	Remedy     string `json:"remedy"`
	RetryAfter int    `json:"retryAfter"`
	Cut        string `json:"cut"`
	Empty      bool   `json:"empty"`
	DelayMs    int64  `json:"delayMs"`
}

// Deed is one thing that the harness does or waits for.
type Deed struct {
	Await    *Wait   `json:"await"`
	Release  string  `json:"release"`
	Signal   string  `json:"signal"`
	Close    bool    `json:"close"`
	Answer   *Rule   `json:"answer"`
	Clear    bool    `json:"clear"`
	Cancel   *Ending `json:"cancel"`
	End      *Ending `json:"end"`
	Lose     *Ending `json:"lose"`
	Forget   bool    `json:"forget"`
	Offline  bool    `json:"offline"`
	Hold     bool    `json:"hold"`
	Resume   bool    `json:"resume"`
	Drain    bool    `json:"drain"`
	Interval int64   `json:"interval"`
	Renew    string  `json:"renew"`
	Rotate   bool    `json:"rotate"`
	Enqueue  string  `json:"enqueue"`
	Sleep    int64   `json:"sleep"`
}

// Ending is what becomes of an attempt.
type Ending struct {
	Task            string   `json:"task"`
	Status          int      `json:"status"`
	Error           string   `json:"error"`
	State           v1.State `json:"state"`
	Reason          string   `json:"reason"`
	ExpectedAttempt int      `json:"expectedAttempt"`
	ReceivedAttempt int      `json:"receivedAttempt"`
}

// Wait is for something to have come to pass.
type Wait struct {
	Call     string `json:"call"`
	Accepted string `json:"accepted"`
	Event    string `json:"event"`
	Task     string `json:"task"`
	Reason   string `json:"reason"`
	Times    int    `json:"times"`
	More     int    `json:"more"`
	Counted  *struct {
		Completed int64 `json:"completed"`
		Failed    int64 `json:"failed"`
	} `json:"counted"`
}

// Expect is what must have been seen in the end.
type Expect struct {
	Tasks      map[string]ExpectTask `json:"tasks"`
	Order      []string              `json:"order"`
	Last       string                `json:"last"`
	Calls      map[string]int        `json:"calls"`
	Together   []string              `json:"together"`
	Workers    *int                  `json:"workers"`
	Exit       int                   `json:"exit"`
	Abrupt     bool                  `json:"abrupt"` // without the event, where a handler blocks all of the runner
	Unfinished []string              `json:"unfinished"`
	Error      string                `json:"error"` // is part of the error that the runner reports
	Created    []string              `json:"created"`
	Names      []string              `json:"names"` // of the registrations
	Log        []LogLine             `json:"log"`
	LogMost    int                   `json:"logMost"` // lines on standard error
}

// LogLine is a line that the runner writes to standard error.
type LogLine struct {
	Has   []string `json:"has"` // all of these, in any case
	Times int      `json:"times"`
}

type ExpectTask struct {
	Outcome     v1.Outcome       `json:"outcome"`
	Output      json.RawMessage  `json:"output"`
	Category    v1.ErrorCategory `json:"category"`
	Message     string           `json:"message"` // is part of it
	Retryable   *bool            `json:"retryable"`
	RetryAfter  *int64           `json:"retryAfterMs"`
	DelayMs     *int64           `json:"delayMs"`
	Stack       bool             `json:"stack"`
	Phase       string           `json:"phase"`
	Partial     json.RawMessage  `json:"partial"`
	Completions int              `json:"completions"`
	Never       bool             `json:"never"`  // a completion
	Silent      bool             `json:"silent"` // no beat names it in the end
	Begun       *int             `json:"begun"`
	BegunWith   json.RawMessage  `json:"begunWith"`
	Ended       *string          `json:"ended"` // empty: it did not
	Detail      string           `json:"detail"`
	Endings     int              `json:"endings"`
	Progress    json.RawMessage  `json:"progress"` // the last that arrived
	Saw         json.RawMessage  `json:"saw"`      // what arrived before the completion, in its order
	Details     json.RawMessage  `json:"details"`  // all that arrived, in their order
	Accepted    int              `json:"accepted"` // beats at the least
	Settled     json.RawMessage  `json:"settled"`  // these fields
	Listed      bool             `json:"listed"`   // from the second beat after its claim was answered
}

func loadCases(t *testing.T) (cases []*Case) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(table))
	d.DisallowUnknownFields()
	if err := d.Decode(&cases); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, c := range cases {
		if c.Name == "" || c.Description == "" || c.Break == "" || names[c.Name] ||
			!slices.Contains([]string{"worker", "track", "create"}, c.Mode) {
			t.Errorf("case %q lacks a unique name, a mode, a description, or a fault that makes it fail", c.Name)
		}
		names[c.Name] = true
		if c.With.Concurrency == 0 {
			c.With.Concurrency = 4
		}
		if c.Worker == nil {
			c.Worker = &Rhythm{IntervalMs: 200, TimeoutMs: 3000}
		}
		if c.Mode == "track" && c.Task == nil {
			c.Task = c.Worker
		}
	}
	return cases
}
