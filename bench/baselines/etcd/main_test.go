package main

import (
	"os/exec"
	"testing"
	"time"
)

func TestMeasure(t *testing.T) {
	path, err := exec.LookPath("etcd")
	if err != nil {
		t.Skip("there is no etcd in PATH")
	}
	const url, peers = "http://127.0.0.1:12379", "http://127.0.0.1:12380"
	cmd := exec.CommandContext(t.Context(), path, "--name", "bench", "--data-dir", t.TempDir(), "--listen-client-urls", url,
		"--advertise-client-urls", url, "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "bench="+peers)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	r, err := measure(t.Context(), url, 100*time.Millisecond, 10) // it waits until etcd answers
	if err != nil || r.Ops < 10 || r.Seconds < 0.1 {
		t.Fatalf("%+v %v", r, err)
	}
}
