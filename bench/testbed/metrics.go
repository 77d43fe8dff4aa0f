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

// Metrics reads Lubdub's metrics from its admin listener. Series are named as there, labels included. It returns nil if there are none.
func (b *Bed) Metrics(t *Target) map[string]float64 {
	text, err := b.getAdmin(t, "/metrics")
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

// CollectGarbage makes a server collect garbage now. Otherwise that may take some minutes, longer than a run. The second collection frees
// what is in pools.
func (b *Bed) CollectGarbage(t *Target) {
	for range 2 {
		_, _ = b.getAdmin(t, "/debug/pprof/heap?gc=1") // without it, the figure is larger, but still valid
	}
}

// getAdmin reads a page of a server's admin listener.
func (b *Bed) getAdmin(t *Target, page string) ([]byte, error) {
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

// flushes counts the round trips with beats, and the beats.
type flushes struct{ trips, beats float64 }

func (b *Bed) flushes(t *Target) flushes {
	m := b.Metrics(t)
	return flushes{m["lubdub_beat_flush_beats_count"], m["lubdub_beat_flush_beats_sum"]}
}

// since returns the beats per round trip, or NaN if there was none.
func (f flushes) since(before flushes) float64 {
	if f.trips == before.trips {
		return math.NaN()
	}
	return (f.beats - before.beats) / (f.trips - before.trips)
}
