package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// nameTime is when the failure of a name is reported, counted from the beginning of its look-up. The duration of the look-up would
// otherwise reveal whether a name of the internal network exists.
const nameTime = 5 * time.Second

// ErrName is the cause if a name has no address that may be called. A name that does not exist and a name of the internal network
// fail in the same way.
var ErrName = errors.New("the name of the host does not lead to an address that may be called: it does not exist, its name server does " +
	"not answer, or its address is not public; correct the name, or have an operator open its range with webhook-allow-cidrs")

// dial connects to an address whose host may be a name.
func (p *Poster) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialling := ctx.Value(diallingKey{}).(context.Context)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(dialling, cancel)()
	answered := time.NewTimer(nameTime)
	defer answered.Stop()
	conn, err := p.connect(ctx, network, address)
	if err == nil {
		c := &connection{Conn: conn}
		c.closeAfter(dialling)
		return c, nil
	}
	if _, literal := netip.ParseAddrPort(address); literal == nil || !isUnresolved(err) {
		return nil, err
	}
	select {
	case <-answered.C:
	case <-ctx.Done():
	}
	return nil, ErrName
}

func isUnresolved(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) || errors.Is(err, ErrAddress)
}

// checkDialled refuses an address that is about to be dialled, after names were resolved.
func (p *Poster) checkDialled(ctx context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	scheme, _ := ctx.Value(schemeKey{}).(string)
	return p.checkAddress(at.Addr(), scheme)
}

// Resolve returns why the host of a URL that Check has passed cannot be called now, or nil. Its error is more detailed than tenants may
// see: it is for the log of the deployment.
func (p *Poster) Resolve(ctx context.Context, text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return errors.New("it is not a URL")
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return nil
	}
	resolver := p.opts.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	addrs, err := resolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return fmt.Errorf("the name of its host cannot be resolved: %w", err)
	}
	for _, a := range addrs {
		if err = p.checkAddress(a, u.Scheme); err == nil {
			return nil
		}
	}
	return err
}
