package outbound

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/lubdub-io/lubdub/internal/bubble"
	"github.com/lubdub-io/lubdub/internal/dnstest"
)

// Who chooses a webhook's URL learns nothing about names of the internal network: the failure is the same, and comes at the
// same time, whether a name does not exist, cannot be resolved, or leads to an address that may not be called.
func TestANameOfTheInternalNetworkFailsAsOneThatDoesNotExist(t *testing.T) {
	_, _ = net.DefaultResolver.LookupHost(t.Context(), "localhost") // what package net shares is made outside of bubbles
	known := map[string]string{"private.example.": "10.1.2.3", "private6.example.": "fd00::1", "metadata.example.": "169.254.169.254",
		"loopback.example.": "127.0.0.1"}
	for _, host := range []string{"missing.example.", "broken.example.", "private.example.", "private6.example.", "metadata.example.",
		"loopback.example."} {
		bubble.Run(t, func(t *testing.T) {
			p, began := New(Options{Resolver: dnstest.Resolver(known)}), time.Now()
			_, _, err := p.Post(t.Context(), "http://"+host+"/?token=abc", nil, nil)
			if took := time.Since(began); !errors.Is(err, ErrName) || err.Error() != ErrName.Error() || took != nameTime {
				t.Errorf("%s: %v after %v", host, err, took)
			}
		})
	}
	bubble.Run(t, func(t *testing.T) {
		p, began := New(Options{Resolver: dnstest.Resolver(known)}), time.Now()
		_, _, err := p.Post(t.Context(), "http://silent.example./?token=abc", nil, nil)
		if took := time.Since(began); err == nil || strings.Contains(err.Error(), "abc") || took > Timeout {
			t.Errorf("a silent name server: %v after %v", err, took)
		}
	})
}

// The error of Resolve, which is logged when a deployment starts, names the problem.
func TestResolve(t *testing.T) {
	_, _ = net.DefaultResolver.LookupHost(t.Context(), "localhost")
	bubble.Run(t, func(t *testing.T) {
		p := New(Options{Resolver: dnstest.Resolver(map[string]string{"private.example.": "10.1.2.3", "public.example.": "8.8.8.8"})})
		for url, want := range map[string]string{
			"https://8.8.8.8/": "", "https://public.example./": "", "https://private.example./": "webhook-allow-cidrs",
			"https://missing.example./": "cannot be resolved", "https://broken.example./": "cannot be resolved",
			"https://silent.example./": "cannot be resolved", "http://public.example./": "uses http",
		} {
			err := p.Resolve(t.Context(), url)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %v, want %q", url, err, want)
			}
		}
	})
}

// Saving a URL resolves no names, so a slow name server delays no request and the answer reveals nothing about its names.
func TestSavingResolvesNoNames(t *testing.T) {
	resolved := false
	p := New(Options{Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		resolved = true
		return nil, errors.New("queried")
	}}})
	for _, host := range []string{"silent.example.", "missing.example", "private.example:8443"} {
		if err := p.Check("https://" + host + "/"); err != nil || resolved {
			t.Errorf("%s: %v, name server queried: %v", host, err, resolved)
		}
	}
}
