package requests

import "github.com/lubdub-io/lubdub/bench/load"

// The number of calls in a task's life, and how many of them are beats; the others change its state.
const (
	BeatsOfALife = 3
	CallsOfALife = 3 + BeatsOfALife
)

// lives takes one task after the other from its creation to its completion.
type lives struct {
	control   []byte
	call      int // of the current life, from 0
	id, token []byte
}

// Lives makes each connection take one task after the other through its life, endlessly.
func Lives(control string) Sources {
	return func(int, int) load.Source { return &lives{control: []byte(control)} }
}

var (
	createBody  = []byte(`{"heartbeatIntervalMs":30000,"heartbeatTimeoutMs":90000}`)
	callsOfLife = [CallsOfALife]struct {
		call string
		body []byte
	}{
		{}, {"/started", []byte(startBody)}, {"/heartbeat", []byte(beatBody)}, {"/heartbeat", []byte(beatBody)},
		{"/heartbeat", []byte(beatBody)}, {"/completed", []byte(completeBody)},
	}
)

func (l *lives) Next(dst []byte) []byte {
	if l.call == 0 {
		return post(dst, "/v1/tasks", nil, "", l.control, createBody)
	}
	c := &callsOfLife[l.call]
	return post(dst, "/v1/tasks/", l.id, c.call, l.token, c.body)
}

func (l *lives) Answered(status int, body []byte, t *load.Tally) (beats int) {
	call, want := l.call, 200
	if call == 0 {
		want = 201
	}
	if expect(want, status, body, t) == 0 {
		l.call = 0 // this life is over
		return 0
	}
	l.call = (call + 1) % CallsOfALife
	switch callsOfLife[call].call {
	case "":
		l.id = append(l.id[:0], after(body, taskIDField, '"')...)
		l.token = append(l.token[:0], after(body, tokenField, '"')...)
	case "/heartbeat":
		return 1
	}
	return 0
}
