package frontend

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"log"
	"net"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// Flags are those of every HTTP baseline.
type Flags struct {
	Listen string
	Redis  string
}

// Parse reads the command line.
func Parse() Flags {
	var f Flags
	flag.StringVar(&f.Listen, "listen", "127.0.0.1:0", "`address` to listen on")
	flag.StringVar(&f.Redis, "redis", "redis://127.0.0.1:6379/0", "`URL` of Redis")
	flag.Parse()
	return f
}

// Serve answers with h until SIGTERM or SIGINT. When it listens it prints where.
func Serve(listen string, h fasthttp.RequestHandler) {
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		log.Fatal(err)
	}
	server := &fasthttp.Server{Handler: h, NoDefaultServerHeader: true, CloseOnShutdown: true}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	fmt.Printf("listening on http://%s\n", ln.Addr())
	select {
	case err = <-ended:
	case <-ctx.Done():
		grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err = server.ShutdownWithContext(grace)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// requestIDs numbers the answers as Lubdub does.
type requestIDs struct {
	prefix string
	count  atomic.Uint64
}

func newRequestIDs() *requestIDs { return &requestIDs{prefix: "req_" + rand.Text()[:10] + "-"} }

func (r *requestIDs) next() string { return r.prefix + strconv.FormatUint(r.count.Add(1), 36) }
