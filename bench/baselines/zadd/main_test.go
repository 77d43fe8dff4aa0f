package main

import (
	"testing"

	"github.com/lubdub-io/lubdub/internal/redistest"
)

func TestRunWritesMembersThatAreThere(t *testing.T) {
	client := redistest.StartServer(t).Client()
	defer func() { _ = client.Close() }()
	names, reports := names(5000), reports()
	if n := len(names[0].(string)); n != len("default/default/task_01M7YG0F4MWFZ7TEKYXT05GJ5M#1.O9LH") {
		t.Errorf("a member has %d bytes: %s", n, names[0])
	}
	if err := fill(t.Context(), client, names, reports, true); err != nil {
		t.Fatal(err)
	}
	if err := write(t.Context(), client, names, reports, 100, true); err != nil {
		t.Fatal(err)
	}
	if n := client.ZCard(t.Context(), beatsKey).Val(); n != 5000 {
		t.Errorf("%d members", n)
	}
	if n := client.HLen(t.Context(), progressKey).Val(); n != 5000 {
		t.Errorf("%d reports", n)
	}
	if n := client.ZCount(t.Context(), beatsKey, "(1", "+inf").Val(); n < 90 || n > 100 {
		t.Errorf("a command of 100 random members moved %d", n)
	}
	if err := write(t.Context(), client, []any{"a member that is not there"}, reports, 100, false); err != nil {
		t.Fatal(err)
	}
	if n := client.ZCard(t.Context(), beatsKey).Val(); n != 5000 {
		t.Errorf("a member that was not there was added: %d", n)
	}
	r, err := run(t.Context(), client, 500, 100, 1, true)
	if err != nil || r.Ops < 100 || r.Ops%100 != 0 {
		t.Errorf("%+v %v", r, err)
	}
	if n := client.Exists(t.Context(), beatsKey, progressKey).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

func TestMain(m *testing.M) { redistest.Main(m) }
