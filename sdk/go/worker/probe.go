package worker

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// listen serves probes, if they are configured.
func (w *Worker) listen() (closeIt func(), err error) {
	if w.set.probe == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", w.set.probe)
	if err != nil {
		return nil, fmt.Errorf("worker: the probe: %w", err)
	}
	if w.probeURL = w.set.probeURL; w.probeURL == "" {
		host, port, _ := net.SplitHostPort(l.Addr().String())
		if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
			host, _ = os.Hostname()
		}
		w.probeURL = "http://" + net.JoinHostPort(host, port) + "/"
	}
	s := &http.Server{Handler: http.HandlerFunc(w.answerProbe), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(l)
	}()
	return func() {
		_ = s.Close()
		<-ended
	}, nil
}

// answerProbe reports whether the process's beats are on time. It makes no calls.
func (w *Worker) answerProbe(rw http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		rw.Header().Set("Allow", "GET, HEAD")
		rw.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	w.mu.Lock()
	bound, known := time.Minute, w.session != nil
	if known {
		bound = w.session.timeout / 2
	}
	w.mu.Unlock()
	if late := w.clock.Now().Sub(time.Unix(0, w.awake.Load())); !known || late > bound {
		rw.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(rw, "not alive\n")
		return
	}
	_, _ = io.WriteString(rw, "alive\n")
}
