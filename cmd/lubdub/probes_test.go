package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

// What worker-probe allows is what late workers' URLs can reach: nothing; the open Internet, which this machine's own addresses
// are not, whatever they are called; or all but what answers for a machine. A redirect leads nowhere.
func TestWorkerProbeLimitsWhatMayBeProbed(t *testing.T) {
	t.Parallel()
	const notPublic, never, redirected = "worker-probe any", "never probes it", "answered with 307"
	for probe, want := range map[string][2]string{"off": {}, "public": {notPublic, notPublic}, "any": {redirected, never}} {
		t.Run(probe, func(t *testing.T) {
			t.Parallel()
			var requests, led atomic.Int64
			private := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				if r.URL.Path == "/target" {
					led.Add(1)
				}
				http.Redirect(w, r, "/target", http.StatusTemporaryRedirect)
			}))
			t.Cleanup(private.Close)
			r := serveEmbedded(t, "--worker-probe", probe, "--worker-heartbeat-interval", "500ms", "--worker-timeout-multiplier", "2")
			base, _ := r.urls()
			_, port, _ := strings.Cut(strings.TrimPrefix(private.URL, "http://"), ":")
			for url, want := range map[string]string{
				"http://127.0.0.1:" + port: want[0], "http://localhost:" + port: want[0], "http://[::ffff:127.0.0.1]:" + port: want[0],
				"http://169.254.169.254/latest": want[1], "http://[::ffff:169.254.169.254]/latest": want[1],
			} {
				if line := r.probed(base, url, probe != "off"); !strings.Contains(line, want) || want == "" && line != "" {
					t.Errorf("%s: the log says %q, want %q", url, line, want)
				}
			}
			if got := requests.Load(); (got > 0) != (probe == "any") || led.Load() > 0 {
				t.Errorf("this machine received %d probes, and %d at the target of the redirect", got, led.Load())
			}
		})
	}
}

// probed has workers with a probe URL fall silent until the log shows the result of a probe; or, without probes, until one has ended. On a
// busy machine one may not be seen while it is late, or not be answered in time: another takes its place.
func (r *running) probed(base, url string, want bool) (lines string) {
	r.t.Helper()
	admin := adminToken(r.t)
	var hired []string
	until(r.t, "a worker was late, and "+url+" judged", func() bool {
		for _, id := range hired {
			lines = r.linesAbout("the probe of a late worker", id)
			inTime := !strings.Contains(lines, "exceeded") && !strings.Contains(lines, "i/o timeout")
			if lines != "" && (inTime || !want) {
				return true
			}
		}
		if len(hired) > 0 {
			if _, is := request("GET", base+"/v1/workers/"+hired[len(hired)-1], admin, ""); !strings.Contains(is, `"OFFLINE"`) {
				return false
			}
			if !want {
				return true
			}
		}
		var w v1.RegisterWorkerResponse
		post(r.t, base+"/v1/workers", admin, fmt.Sprintf(`{"queue":"q","types":["x"],"machineId":"m","probeUrl":%q}`, url), &w)
		hired = append(hired, w.WorkerID)
		return false
	})
	return lines
}

// linesAbout returns the lines of the log with both texts.
func (r *running) linesAbout(what, whom string) (found string) {
	for line := range strings.Lines(r.errs.String()) {
		if strings.Contains(line, what) && strings.Contains(line, whom) && strings.HasSuffix(line, "\n") {
			found += line
		}
	}
	return found
}
