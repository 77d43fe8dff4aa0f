package bench

import (
	"context"
	"os/exec"

	"github.com/lubdub-io/lubdub/bench/report"
)

// runEtcd is for scale: what keeps leases alive elsewhere.
func runEtcd(ctx context.Context, b *bench, s *report.Scenario) error {
	if _, err := exec.LookPath("etcd"); err != nil {
		s.Notes = append(s.Notes, "there is no etcd in PATH, so it was left out")
		return nil
	}
	path, ok := b.baseline(etcd)
	if !ok {
		return nil
	}
	b.progress.step("etcd")
	own, err := b.self(ctx, etcd, path, "--for", b.For.String(), "--leases", "256")
	if err != nil {
		return err
	}
	s.Runs = append(s.Runs, report.Run{
		Program: etcd, Variant: "keep-alives", Round: 1, Loop: report.Closed, BeatsPerRequest: 1, Tracked: 256,
		Seconds: own.Seconds, Beats: own.Ops, BeatsPerSecond: float64(own.Ops) / own.Seconds, ServerMicros: own.perOp(own.ServerCPUSeconds),
	})
	return nil
}
