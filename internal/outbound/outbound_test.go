package outbound

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func opened(cidrs ...string) *Poster {
	o := Options{}
	for _, c := range cidrs {
		o.Allow = append(o.Allow, netip.MustParsePrefix(c))
	}
	return New(o)
}

// What is no URL that may be called is refused when it is saved, with what to do instead.
func TestURLsAreCheckedWhenTheyAreSaved(t *testing.T) {
	t.Parallel()
	strict := New(Options{})
	for url, want := range map[string]string{
		"":                             "not a URL",
		"example.com/hook":             "not a URL",
		"https://":                     "not a URL",
		"mailto:a@example.com":         "not a URL",
		"ftp://8.8.8.8/":               "https://",
		"http://8.8.8.8/":              "uses http",
		"http://name.invalid/":         "uses http",
		"https://user:secret@8.8.8.8/": "credentials",
		"https://token@8.8.8.8/":       "credentials",
		"https://8.8.8.8/#part":        "fragment",
		"https://8.8.8.8/#":            "fragment",
		"https://8.8.8.8/ a":           "not a URL",
		"https://8.8.8.8/" + strings.Repeat("a", maxURL): "longer",
		"https://2130706433/":                            "number", // 127.0.0.1
		"https://0x7f.1/":                                "number",
		"https://0177.0.0.1/":                            "number",
		"https://0/":                                     "number",
		"https://name.08./":                              "number",
		"https://10。0。0。1/":                              "xn--", // IDNA's full stops: 10.0.0.1
		"https://ｌocalhost/":                             "xn--",
		"https://8.8.8.8:99999/":                         "port",
		"https://8.8.8.8:0/":                             "port",
		"https://127.0.0.1/":                             "webhook-allow-cidrs",
		"https://127.1.2.3:8443/":                        "webhook-allow-cidrs",
		"https://localhost/":                             "webhook-allow-cidrs",
		"https://LocalHost./":                            "webhook-allow-cidrs",
		"https://hook.localhost:8443/":                   "webhook-allow-cidrs",
		"https://10.1.2.3/":                              "webhook-allow-cidrs",
		"https://172.16.0.1/":                            "webhook-allow-cidrs",
		"https://192.168.1.1/":                           "webhook-allow-cidrs",
		"https://100.64.0.1/":                            "webhook-allow-cidrs",
		"https://169.254.169.254/latest":                 "webhook-allow-cidrs",
		"https://168.63.129.16/":                         "webhook-allow-cidrs",
		"https://0.0.0.0/":                               "webhook-allow-cidrs",
		"https://255.255.255.255/":                       "webhook-allow-cidrs",
		"https://224.0.0.1/":                             "webhook-allow-cidrs",
		"https://[::1]/":                                 "webhook-allow-cidrs",
		"https://[::]/":                                  "webhook-allow-cidrs",
		"https://[fe80::1]/":                             "webhook-allow-cidrs",
		"https://[fd00:ec2::254]/":                       "webhook-allow-cidrs",
		"https://[::ffff:127.0.0.1]/":                    "webhook-allow-cidrs",
		"https://[::ffff:169.254.169.254]/":              "webhook-allow-cidrs",
		"https://[64:ff9b::7f00:1]/":                     "webhook-allow-cidrs", // NAT64
		"https://[64:ff9b:1::a00:1]/":                    "webhook-allow-cidrs",
		"https://[2002:7f00:1::]/":                       "webhook-allow-cidrs", // 6to4
		"https://[2001:0:4136:e378::3fff:1]/":            "webhook-allow-cidrs", // Teredo
		"https://[::127.0.0.1]/":                         "webhook-allow-cidrs",
	} {
		if err := strict.Check(url); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", url, err, want)
		}
	}
	for _, url := range []string{"https://8.8.8.8/hook?a=b", "https://[2606:4700:4700::1111]:8443/", "https://name.invalid/hook"} {
		if err := strict.Check(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, url := range []string{"http://127.0.0.1/", "https://[::ffff:127.0.0.1]/", "http://10.9.8.7:1/", "http://name.invalid/"} {
		if err := opened("127.0.0.0/8", "10.9.0.0/16").Check(url); err != nil {
			t.Errorf("%s, in a range that is open: %v", url, err)
		}
	}
	if err := opened("10.9.0.0/16").Check("http://10.10.0.1/"); !errors.Is(err, ErrAddress) {
		t.Errorf("outside the open range: %v", err)
	}
	if err := opened("10.9.0.0/16").Check("http://8.8.8.8/"); !errors.Is(err, ErrPlain) {
		t.Errorf("by http at a public address: %v", err)
	}
}

// An address is checked when it is dialled.
func TestAddressesAreCheckedWhenTheyAreDialled(t *testing.T) {
	t.Parallel()
	called := false
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer s.Close()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	for _, host := range []string{"127.0.0.1", "[::ffff:127.0.0.1]"} {
		_, _, err := opened().Post(t.Context(), "http://"+net.JoinHostPort(strings.Trim(host, "[]"), port)+"/", nil, nil)
		if !errors.Is(err, ErrAddress) {
			t.Errorf("%s: %v, want it refused", host, err)
		}
	}
	if called {
		t.Error("it was called")
	}
	for address, want := range map[string]error{"8.8.8.8:25": nil, "[64:ff9b::a00:1]:443": ErrAddress, "169.254.169.254:80": ErrAddress} {
		if err := opened().checkDialled(t.Context(), "tcp", address, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, _, err := opened("127.0.0.0/8").Post(t.Context(), "HTTP://8.8.8.8:"+port+"/", nil, nil); !errors.Is(err, ErrPlain) {
		t.Errorf("by http at a public address: %v", err)
	}
	if opened().checkDialled(t.Context(), "tcp", "name.example:80", nil) == nil {
		t.Error("a name was let through unresolved")
	}
	if status, _, err := opened("127.0.0.0/8", "::1/128").Post(t.Context(), "http://localhost:"+port, nil, nil); status != 200 || err != nil {
		t.Errorf("in a range that is open: %d %v", status, err)
	}
}

// An answer is bounded, a redirect is not followed, a proxy of the environment is not used, and errors contain nothing of the URL.
func TestWhatIsPosted(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	var got http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/target", http.StatusTemporaryRedirect)
		case "/endless":
			for _, err := w.Write(make([]byte, 1<<20)); err == nil; _, err = w.Write(make([]byte, 1<<20)) {
			}
		case "/cut", "/hangs":
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = c.Write([]byte("HTTP/1.1 410 Gone\r\nContent-Length: 100\r\n\r\npart"))
			if r.URL.Path == "/hangs" {
				_, _ = io.Copy(io.Discard, c) // until the caller has gone
			}
			_ = c.Close()
		case "/target":
			t.Error("a redirect was followed")
		default:
			got = r.Header.Clone()
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte("no"))
		}
	}))
	defer s.Close()
	p := opened("127.0.0.0/8")
	status, excerpt, err := p.Post(t.Context(), s.URL+"/hook", map[string]string{"webhook-id": "a"}, []byte("{}"))
	if status != http.StatusTeapot || string(excerpt) != "no" || err != nil || got.Get("Webhook-Id") != "a" {
		t.Errorf("%d %q %v %v", status, excerpt, err, got)
	}
	if status, _, err := p.Post(t.Context(), s.URL+"/moved", nil, nil); status != http.StatusTemporaryRedirect || err != nil {
		t.Errorf("moved: %d %v", status, err)
	}
	if _, excerpt, err := p.Post(t.Context(), s.URL+"/endless", nil, nil); len(excerpt) != MaxExcerpt || err != nil {
		t.Errorf("endless: %d bytes, %v", len(excerpt), err)
	}
	for _, path := range []string{"/cut", "/hangs"} { // the status counts
		status, excerpt, err := p.Post(t.Context(), s.URL+path, nil, nil)
		if status != http.StatusGone || string(excerpt) != "part" || err != nil {
			t.Errorf("%s: %d %q %v", path, status, excerpt, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{t.Context(), ended} {
		_, _, err := p.Post(ctx, "http://127.0.0.1:1/?token=abc", nil, nil)
		if err == nil || strings.Contains(err.Error(), "abc") || strings.Contains(err.Error(), "127.") {
			t.Error(err)
		}
	}
}
