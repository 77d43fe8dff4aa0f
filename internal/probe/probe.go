// Package probe requests workers' probe URLs to check whether they are alive. The client that registered a worker chose the URL, so
// its address is checked when it is dialled, after the name has been resolved.
package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"
)

// Timeout limits one probe.
const Timeout = 2 * time.Second

// ErrAddress is the cause of a refusal to dial.
var ErrAddress = errors.New("the address is not public; allow private ones with --worker-probe any")

// Prober requests probe URLs. Create it with New.
type Prober struct{ client *http.Client }

// New creates a prober. Unless private is set it refuses every address that is not public: loopback, private, link-local, multicast and
// the like. It always refuses the metadata services of clouds.
func New(private bool) *Prober {
	dialer := &net.Dialer{Timeout: Timeout, Control: refusePrivate}
	if private {
		dialer.Control = refuseMetadata
	}
	return &Prober{client: &http.Client{
		Timeout: Timeout,
		Transport: &http.Transport{
			Proxy: nil, DialContext: dialer.DialContext, DisableKeepAlives: true,
			ResponseHeaderTimeout: Timeout, TLSHandshakeTimeout: Timeout, MaxResponseHeaderBytes: 16 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Probe requests one URL. It returns nil if the status is 2xx. The error contains nothing of the URL but its host.
func (p *Prober) Probe(ctx context.Context, to string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return errors.New("the URL cannot be requested")
	}
	req.Header.Set("User-Agent", "lubdub-probe")
	res, err := p.client.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	_ = res.Body.Close() // the content does not matter
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("the probe was answered with %d", res.StatusCode) // without the answer's text, which has no length limit
	}
	return nil
}

// withoutURL returns an error of a request without its URL, whose query may be a secret.
func withoutURL(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		return of.Err
	}
	return err
}

// ErrPort is the cause of a refusal to dial.
var ErrPort = errors.New("the port belongs to a service that speaks no HTTP; let the worker answer on 80, 443 or one from 1024 up, or " +
	"allow every port with --worker-probe any")

// refusePrivate checks an address that is about to be dialled, after names were resolved: an earlier check of the name would prove
// nothing, since it may resolve to another address now.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	switch port := at.Port(); {
	case !Public(at.Addr()):
		return fmt.Errorf("%s: %w", at.Addr(), ErrAddress)
	case port < 1024 && port != 80 && port != 443:
		return fmt.Errorf("%d: %w", port, ErrPort)
	}
	return nil
}

// ErrMetadata is the cause of a refusal to dial, whatever else is allowed.
var ErrMetadata = errors.New("the address is link-local or a cloud's own, where machines get credentials from; Lubdub never probes it")

// refuseMetadata checks an address that is about to be dialled when private ones are allowed.
func refuseMetadata(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err == nil && isMetadata(at.Addr()) {
		err = fmt.Errorf("%s: %w", at.Addr(), ErrMetadata)
	}
	return err
}

// metadata is the addresses of the metadata services of clouds, except link-local ones.
var metadata = prefixes("100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::/32", "fd20:ce::254/128", "fd00:42::42/128")

func isMetadata(a netip.Addr) bool {
	a = embeddedIPv4(a)
	return a.IsLinkLocalUnicast() || slices.ContainsFunc(metadata, func(p netip.Prefix) bool { return p.Contains(a) })
}

// embeddedIPv4 returns the IPv4 address that an IPv6 address embeds: mapped, NAT64 and the like (all in ::/8), 6to4.
func embeddedIPv4(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	switch b := a.As16(); {
	case a.Is6() && b[0] == 0:
		return netip.AddrFrom4([4]byte(b[12:]))
	case a.Is6() && b[0] == 0x20 && b[1] == 0x02:
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return a
}

// global6 is the IPv6 range of public hosts. Everything else is special: loopback, link-local, unique local, multicast, and embedded IPv4
// addresses (::/96, NAT64), which may be private.
var global6 = netip.MustParsePrefix("2000::/3")

// notPublic are ranges that are not public although they look so.
var notPublic = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"240.0.0.0/4",
	"168.63.129.16/32", // the host of a virtual machine on Azure
	"2001::/23",        // Teredo among others, which embeds IPv4 addresses
	"2001:db8::/32", "3fff::/20",
	"2002::/16", // 6to4, which embeds IPv4 addresses
)

func prefixes(of ...string) (list []netip.Prefix) {
	for _, p := range of {
		list = append(list, netip.MustParsePrefix(p))
	}
	return list
}

// Public reports whether an address is public.
func Public(a netip.Addr) bool {
	a = a.Unmap()
	switch {
	case !a.IsValid() || a.Zone() != "" || a.IsUnspecified() || a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsMulticast(),
		a.Is6() && !global6.Contains(a):
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
