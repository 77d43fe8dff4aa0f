package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// What is wrong and what to do about it are two sentences.
func TestHealthSpeaksInSentences(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":"degraded","message":"Redis is not responding. See the log","next":"Run redis-cli"}`)
	}))
	defer server.Close()
	code, out, errs := command(nil, "health", "--url", server.URL)
	if code != exitOK || out != "degraded: Redis is not responding. See the log. Run redis-cli\n" {
		t.Errorf("%d: %s%s", code, out, errs)
	}
}
