package faultproxy

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Proxy carries bytes to one target and back. Its methods may be called from any goroutine.
type Proxy struct {
	Addr string // where it listens

	target   string
	listener *net.TCPListener
	running  sync.WaitGroup
	delay    atomic.Int64 // ns by which everything that the server says is held up
	judge    atomic.Pointer[func([]byte) Fate]

	mu     sync.Mutex
	links  map[*link]bool
	still  chan struct{} // nil: bytes flow; closed when they do again
	refuse bool
	drops  bool     // new connections are not answered
	filler net.Conn // fills the queue of connections meanwhile; nil: another one does
	closed bool
}

// Fate is what happens to a request.
type Fate int

const (
	Pass        Fate = iota
	LoseRequest      // the server never gets it, and the connection is cut
	CutShort         // the server gets half of it, and the connection is cut
	LoseReply        // the server executes it, the client never gets the reply, and the connection is cut
)

// Start runs a proxy to the target on a free loopback port until the test ends.
func Start(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, listener: l.(*net.TCPListener), links: map[*link]bool{}}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Judge has a function decide what happens to whatever clients write from now on; it sees each piece as it was written, which is
// one request or one pipeline as long as that is below 32 KiB. Nil lets everything pass. It may be called from several
// goroutines at once.
func (p *Proxy) Judge(judge func(request []byte) Fate) {
	if judge == nil {
		p.judge.Store(nil)
		return
	}
	p.judge.Store(&judge)
}

// Delay holds up everything that the server sends by so much from now on.
func (p *Proxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

// Pause lets nothing pass in either direction until Resume; connections stay open, and new ones are taken.
func (p *Proxy) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.still == nil {
		p.still = make(chan struct{})
	}
}

// Drop does what Pause does, and nothing answers those who connect, as where packets are lost. It lasts until Resume.
func (p *Proxy) Drop() {
	p.Pause()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drops {
		return
	}
	p.drops = true
	// The kernel drops what asks for a connection while the queue of those that were not accepted is full.
	_ = p.listener.SetDeadline(time.Unix(1, 0))
	p.backlog(0)
	filler, _ := net.DialTimeout("tcp", p.Addr, 100*time.Millisecond) // without an answer where a client was quicker to fill it
	p.fill(filler)
}

func (p *Proxy) fill(with net.Conn) {
	if p.filler != nil {
		_ = p.filler.Close()
	}
	p.filler = with
}

func (p *Proxy) backlog(n int) {
	if raw, err := p.listener.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = syscall.Listen(int(fd), n) })
	}
}

// Resume lets pass what Pause and Drop have held, and takes connections again after Refuse and Drop.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = false
	if p.drops {
		p.drops = false
		p.fill(nil)
		p.backlog(128)
		_ = p.listener.SetDeadline(time.Time{})
	}
	if p.still != nil {
		close(p.still)
		p.still = nil
	}
}

// Cut ends every connection at once. New ones are taken.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
}

// Refuse ends every connection, and every new one at once, until Resume.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	p.refuse = true
	p.mu.Unlock()
	p.Cut()
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files: the client waits until another connection is closed
			time.Sleep(10 * time.Millisecond)
			continue
		}
		p.running.Go(func() { p.carry(c) })
	}
}

// carry serves one connection until either end closes it.
func (p *Proxy) carry(client net.Conn) {
	l := &link{proxy: p, client: client, ended: make(chan struct{})}
	if !p.add(l) {
		_ = client.Close()
		return
	}
	defer p.remove(l)
	var err error
	if l.server, err = net.DialTimeout("tcp", p.target, 5*time.Second); err != nil {
		l.cut()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.pump(l.client, l.server, l.request) })
	both.Go(func() { l.pump(l.server, l.client, l.reply) })
	both.Wait()
}

func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse || p.closed {
		return false
	}
	p.links[l] = true
	return true
}

func (p *Proxy) remove(l *link) {
	l.cut()
	if l.server != nil {
		_ = l.server.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.fill(nil)
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Cut()
	p.running.Wait()
}

// link is one connection of a client and the one to the server that belongs to it.
type link struct {
	proxy  *Proxy
	client net.Conn
	server net.Conn
	lose   atomic.Bool // the next thing that the server says is lost
	once   sync.Once
	ended  chan struct{}
}

// cut ends both connections: the pump that reads from the client closes the server's.
func (l *link) cut() {
	l.once.Do(func() {
		close(l.ended)
		_ = l.client.Close()
	})
}

// pump carries what one end sends to the other, as far as judge lets it.
func (l *link) pump(from, to net.Conn, judge func([]byte) (rest []byte, on bool)) {
	defer func() {
		l.cut()
		_ = l.server.Close()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !l.flows() {
				return
			}
			rest, on := judge(buf[:n])
			if _, failed := to.Write(rest); failed != nil || !on {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// flows waits while the proxy stands still. It reports whether the connection has outlived that.
func (l *link) flows() bool {
	l.proxy.mu.Lock()
	still := l.proxy.still
	l.proxy.mu.Unlock()
	if still == nil {
		return true
	}
	select {
	case <-still:
		return true
	case <-l.ended:
		return false
	}
}

func (l *link) request(b []byte) (rest []byte, on bool) {
	judge := l.proxy.judge.Load()
	if judge == nil {
		return b, true
	}
	switch (*judge)(b) {
	case LoseRequest:
		return nil, false
	case CutShort:
		return b[:len(b)/2], false
	case LoseReply:
		l.lose.Store(true)
	}
	return b, true
}

func (l *link) reply(b []byte) (rest []byte, on bool) {
	if l.lose.Load() {
		return nil, false
	}
	if d := time.Duration(l.proxy.delay.Load()); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.ended:
			return nil, false
		}
	}
	return b, true
}
