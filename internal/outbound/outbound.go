package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/lubdub-io/lubdub/internal/probe"
)

const maxURL = 2 << 10

// ErrAddress is the cause of a refusal to call an address.
var ErrAddress = errors.New("this host has an address that is not public, which may be private, loopback, link-local or a cloud's own; " +
	"use a public one, or have an operator open its range with webhook-allow-cidrs")

// ErrPlain is the cause of a refusal to call an address by http.
var ErrPlain = errors.New("the URL uses http, so messages would be sent unencrypted; use https and a public address, " +
	"or have an operator open the range of this address with webhook-allow-cidrs")

// Options define which addresses may be called. The zero Options allow https to public addresses.
type Options struct {
	Allow    []netip.Prefix // ranges that may be called although they are not public, also by http
	Resolver *net.Resolver  // for names; nil: the host's
}

// Poster posts webhooks. Create it with New; its methods may be called from any goroutine.
type Poster struct {
	opts    Options
	client  *http.Client
	connect func(ctx context.Context, network, address string) (net.Conn, error) // resolves names, and checks their addresses
}

// New creates a Poster. It follows no redirects and uses no proxy from the environment: either would bypass the checks.
func New(o Options) *Poster {
	p := &Poster{opts: o}
	p.connect = (&net.Dialer{Timeout: Timeout, ControlContext: p.checkDialled, Resolver: o.Resolver}).DialContext
	p.client = &http.Client{
		Transport: &http.Transport{
			Proxy: nil, DialContext: p.dial, TLSHandshakeTimeout: Timeout,
			MaxResponseHeaderBytes: 16 << 10, MaxIdleConns: 1024, MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p
}

// checkAddress returns why an address may not be called, or nil.
func (p *Poster) checkAddress(a netip.Addr, scheme string) error {
	bare := a.Unmap().WithZone("")
	switch {
	case slices.ContainsFunc(p.opts.Allow, func(r netip.Prefix) bool { return r.Contains(bare) }):
		return nil
	case !probe.Public(a):
		return ErrAddress
	case scheme == "http":
		return ErrPlain
	}
	return nil
}

// Check returns what is wrong with a URL that is to be saved, or nil. It resolves no names: the addresses of a name are checked each
// time it is dialled. So a slow name server does not delay saving a webhook, and the answer reveals nothing about names of the internal
// network.
func (p *Poster) Check(text string) error {
	u, err := url.Parse(text)
	switch {
	case len(text) > maxURL:
		return fmt.Errorf("is longer than %d bytes; use a shorter one", maxURL)
	case err != nil || u.Opaque != "" || u.Hostname() == "" || strings.ContainsAny(text, " \t\r\n"):
		return errors.New("is not a URL; write for example https://example.com/hook")
	case strings.ContainsFunc(u.Hostname(), func(r rune) bool { return r > unicode.MaxASCII }): // its converted name may be an address
		return errors.New("has a host that is not ASCII; write it as it is looked up, for example https://xn--mnchen-3ya.example/hook")
	case u.User != nil:
		return errors.New("contains credentials, which every reader of the webhook would see; remove them: each message is signed")
	case u.Fragment != "" || strings.Contains(text, "#"):
		return errors.New("has a fragment, which no server sees; take it out")
	case u.Scheme == "http" && len(p.opts.Allow) == 0:
		return fmt.Errorf("cannot be called: %w", ErrPlain)
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("must begin with https://")
	case u.Port() != "" && !isPort(u.Port()):
		return errors.New("has an invalid port; use 1 to 65535")
	}
	a, err := netip.ParseAddr(u.Hostname())
	switch {
	case err != nil && isLocalhost(u.Hostname()):
		a = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case err != nil && endsInNumber(u.Hostname()):
		return errors.New("has a number for a host, which some read as an address; write the address as 192.0.2.1, or a name")
	case err != nil:
		return nil
	}
	if err := p.checkAddress(a, u.Scheme); err != nil {
		return fmt.Errorf("cannot be called: %w", err)
	}
	return nil
}

// isLocalhost reports whether a name means this host, whatever resolvers return (RFC 6761).
func isLocalhost(name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// endsInNumber reports whether a host that is not an IP address ends in a number, like 2130706433 and 0x7f.1: by the URL standard it
// is an address, since no host name ends so.
func endsInNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, err := strconv.ParseUint(last, 0, 64)
	return err == nil || last != "" && strings.Trim(last, "0123456789") == ""
}
