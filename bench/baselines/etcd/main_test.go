package main

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestMeasure(t *testing.T) {
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Skip("there is no etcd here")
	}
	t.Setenv("TMPDIR", t.TempDir())
	r, err := measure(t.Context(), 100*time.Millisecond, 10, 3)
	if err != nil || r.Ops < 10 || r.Seconds < 0.1 {
		t.Fatalf("%+v %v", r, err)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestWithoutEtcd(t *testing.T) {
	t.Setenv("PATH", "")
	if _, err := measure(t.Context(), time.Second, 1, 1); err == nil {
		t.Error("measured without etcd")
	}
}
