package testbed

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Metrics reads Lubdub's metrics from its admin listener. Series are named as they are there, labels included. It is nil where there
// are none.
func (b *Bed) Metrics(t *Target) map[string]float64 {
	text, err := b.ask(t, "/metrics")
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

// CollectGarbage has a server do so now. On its own it would within some minutes, longer than a run takes. What is kept in pools is freed
// the second time.
func (b *Bed) CollectGarbage(t *Target) {
	for range 2 {
		_, _ = b.ask(t, "/debug/pprof/heap?gc=1") // without, the figure is larger, and no less true
	}
}

// ask reads a page of a server's admin listener.
func (b *Bed) ask(t *Target, page string) ([]byte, error) {
	if t.Server == nil || t.Server.Admin == "" {
		return nil, http.ErrNotSupported
	}
	return b.get(t.Server.Admin + page)
}

func (b *Bed) get(url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(b.Ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
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

// flushes counts the round trips that carried beats, and the beats.
type flushes struct{ trips, beats float64 }

func (b *Bed) flushes(t *Target) flushes {
	m := b.Metrics(t)
	return flushes{m["lubdub_beat_flush_beats_count"], m["lubdub_beat_flush_beats_sum"]}
}

// since is the beats of one round trip; NaN when there was none.
func (f flushes) since(before flushes) float64 {
	if f.trips == before.trips {
		return math.NaN()
	}
	return (f.beats - before.beats) / (f.trips - before.trips)
}
