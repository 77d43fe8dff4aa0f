package probe

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestPublic(t *testing.T) {
	for _, a := range []string{
		"127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "0.1.2.3", "224.0.0.1",
		"255.255.255.255",
		"::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",
		"2001:db8::1", "198.18.0.1",
		"::127.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1", "64:ff9b:1::a00:1", "100.100.100.200", "168.63.129.16", "192.0.0.192",
		"::ffff:168.63.129.16",
		"fec0::1", "fe80::1%eth0", "ff0e::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "3fff::1", "5f00::1", "100::1", "8000::1",
		"255.255.255.255", "127.255.255.254",
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

// A name is checked by the address to which it resolves when it is dialled, whatever it resolved to before; and so is the target of each
// redirect.
func TestAddressesAreCheckedWhenTheyAreDialled(t *testing.T) {
	for address, want := range map[string]error{
		"127.0.0.1:80": ErrAddress, "[::1]:443": ErrAddress, "[::ffff:10.0.0.1]:80": ErrAddress, "[64:ff9b::a00:1]:80": ErrAddress,
		"169.254.169.254:80": ErrAddress, "0.0.0.0:80": ErrAddress,
		"8.8.8.8:22": ErrPort, "8.8.8.8:25": ErrPort, "8.8.8.8:53": ErrPort, "8.8.8.8:0": ErrPort, "[2606:4700:4700::1111]:111": ErrPort,
		"8.8.8.8:80": nil, "8.8.8.8:443": nil, "8.8.8.8:1024": nil, "8.8.8.8:8081": nil, "[2606:4700:4700::1111]:443": nil,
	} {
		if err := refusePrivate("tcp", address, nil); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%s: %v, want %v", address, err, want)
		}
	}
	for name, refuse := range map[string]func(string, string, syscall.RawConn) error{"public": refusePrivate, "any": refuseMetadata} {
		if refuse("tcp", "name.example:80", nil) == nil {
			t.Errorf("%s: a name was let through unresolved", name)
		}
	}
}

// Where private addresses are probed too, those that serve a machine's credentials are not, however they are written.
func TestMetadataIsNeverProbed(t *testing.T) {
	for _, a := range []string{
		"169.254.169.254", "169.254.170.2", "169.254.170.23", "168.63.129.16", "100.100.100.200", "192.0.0.192",
		"fe80::a9fe:a9fe", "fe80::1%eth0", "fd00:ec2::254", "fd00:ec2::254%eth0", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42",
		"::ffff:169.254.169.254", "::169.254.169.254", "::ffff:0:169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe",
		"2002:a9fe:a9fe::1", "::ffff:168.63.129.16", "64:ff9b::6464:64c8",
	} {
		if err := refuseMetadata("tcp", net.JoinHostPort(a, "80"), nil); !errors.Is(err, ErrMetadata) {
			t.Errorf("%s: %v, want it refused", a, err)
		}
	}
	if err := New(true).Probe(t.Context(), "http://[::ffff:169.254.169.254]:1/latest"); !errors.Is(err, ErrMetadata) {
		t.Errorf("%v, want it refused at dialling", err)
	}
	for _, a := range []string{"127.0.0.1", "10.0.0.7", "192.168.1.1", "100.64.0.1", "8.8.8.8", "::1", "fd12:3456::7", "::ffff:10.0.0.7",
		"2606:4700:4700::1111", "64:ff9b::a00:7"} {
		if err := refuseMetadata("tcp", net.JoinHostPort(a, "22"), nil); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
}

// The text of a failure is logged, and a URL may contain a secret.
func TestFailuresDoNotRevealTheURL(t *testing.T) {
	for _, url := range []string{"http://127.0.0.1:1/?key=abc", "http://169.254.169.254/?key=abc", "http://name.invalid/?key=abc",
		"://?key=abc"} {
		for _, p := range []*Prober{New(true), New(false)} {
			if err := p.Probe(t.Context(), url); err == nil || strings.Contains(err.Error(), "abc") {
				t.Errorf("%s: %v", url, err)
			}
		}
	}
}

// No answer keeps a probe longer than it may, or makes it hold more than it needs, whatever is sent.
func TestHostileAnswers(t *testing.T) {
	requested := make(chan string, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requested <- r.URL.Path
		switch r.URL.Path {
		case "/headers":
			for i := range 2000 {
				w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("x", 100))
			}
		case "/moved":
			http.Redirect(w, r, "/target", http.StatusTemporaryRedirect)
		case "/endless": // it is alive: what follows the status is not read
			for _, err := w.Write(make([]byte, 1<<20)); err == nil; _, err = w.Write(make([]byte, 1<<20)) {
			}
		case "/silent":
			<-r.Context().Done()
		}
	}))
	defer s.Close()
	p := New(true)
	for path, alive := range map[string]bool{"/headers": false, "/moved": false, "/silent": false, "/endless": true} {
		if err := p.Probe(t.Context(), s.URL+path); (err == nil) != alive {
			t.Errorf("%s: %v", path, err)
		}
	}
	for len(requested) > 0 {
		if path := <-requested; path == "/target" {
			t.Error("a redirect was followed")
		}
	}
}

func FuzzPublic(f *testing.F) {
	for _, a := range []string{"127.0.0.1", "::ffff:7f00:1", "64:ff9b::7f00:1", "2002:7f00:1::", "8.8.8.8", "fe80::1%0", "2606:4700::1",
		"::7f00:1"} {
		f.Add(a)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := netip.ParseAddr(text)
		if err != nil || !Public(a) {
			return
		}
		ip := net.IP(a.AsSlice())
		if ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() || ip.IsMulticast() || ip.IsUnspecified() ||
			!ip.IsGlobalUnicast() {
			t.Fatalf("%s was let through", text)
		}
		if four := a.Unmap().AsSlice(); len(four) == 4 && !Public(netip.AddrFrom16([16]byte(append(append(make([]byte, 10), 0xff, 0xff),
			four...)))) {
			t.Fatalf("%s is judged otherwise as a mapped address", text)
		}
	})
}
