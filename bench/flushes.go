package bench

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lubdub-io/lubdub/bench/proc"
)

// scrape reads Lubdub's metrics from its admin listener. Series are named as they stand there, labels included. It is
// nil where there are none.
func scrape(ctx context.Context, s *proc.Server) map[string]float64 {
	if s == nil || s.Admin == "" {
		return nil
	}
	text, err := ask(ctx, s, "/metrics")
	if err != nil {
		return nil
	}
	m := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if i := strings.LastIndexByte(lines.Text(), ' '); i > 0 && lines.Text()[0] != '#' {
			if v, err := strconv.ParseFloat(lines.Text()[i+1:], 64); err == nil {
				m[lines.Text()[:i]] = v
			}
		}
	}
	return m
}

// ask reads a page of an admin listener.
func ask(ctx context.Context, s *proc.Server, page string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Admin+page, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// collect has a server collect its garbage now. By itself it would do so within some minutes, longer than a run takes. What
// is kept in pools goes the second time.
func collect(ctx context.Context, s *proc.Server) {
	for range 2 {
		_, _ = ask(ctx, s, "/debug/pprof/heap?gc=1") // without, the figure is larger, and no less true
	}
}

// flushes counts the round trips that carried beats, and the beats.
type flushes struct{ trips, beats float64 }

func readFlushes(ctx context.Context, s *proc.Server) *flushes {
	m := scrape(ctx, s)
	trips, ok := m["lubdub_beat_flush_beats_count"]
	if !ok {
		return nil
	}
	return &flushes{trips: trips, beats: m["lubdub_beat_flush_beats_sum"]}
}

func (f *flushes) mean(before *flushes) *float64 {
	if f == nil || before == nil || f.trips == before.trips {
		return nil
	}
	mean := (f.beats - before.beats) / (f.trips - before.trips)
	return &mean
}
