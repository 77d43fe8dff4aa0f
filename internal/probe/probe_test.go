package probe

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestPublic(t *testing.T) {
	for _, a := range []string{
		"127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255",
		"::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1", "198.18.0.1",
	} {
		if Public(netip.MustParseAddr(a)) {
			t.Errorf("%s was let through", a)
		}
	}
	for _, a := range []string{"8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8"} {
		if !Public(netip.MustParseAddr(a)) {
			t.Errorf("%s was refused", a)
		}
	}
}

func TestProbe(t *testing.T) {
	var moved string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, moved, http.StatusFound)
		case "/sick":
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer s.Close()
	moved = s.URL + "/well"
	byName := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	any, public := New(true), New(false)
	for _, url := range []string{s.URL + "/well", byName} {
		if err := any.Probe(t.Context(), url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
		if err := public.Probe(t.Context(), url); !errors.Is(err, ErrAddress) {
			t.Errorf("%s: %v, want it refused at dialling", url, err)
		}
	}
	for _, url := range []string{s.URL + "/sick", s.URL + "/moved", "http://127.0.0.1:1/", "://"} {
		if any.Probe(t.Context(), url) == nil {
			t.Errorf("%s counts as alive", url)
		}
	}
}
