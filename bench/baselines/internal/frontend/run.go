package frontend

import (
	"crypto/rand"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"
)

// Way is what distinguishes a baseline: how it verifies tokens, based on the plain way, and how it sends its script calls to Redis.
type Way func(plain Verify, opt *redis.Options) (Verify, redis.Scripter, error)

// Handler returns the handler of a baseline for a Redis and signing keys.
func (w Way) Handler(url, keys string) (fasthttp.RequestHandler, error) {
	plain, err := Verifier(keys)
	if err != nil {
		return nil, err
	}
	opt, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	verify, store, err := w(plain, opt)
	return Handler(verify, store), err
}

// Main is the main function of a baseline.
func (w Way) Main() {
	Serve(func(url string) (fasthttp.RequestHandler, error) {
		return w.Handler(url, os.Getenv("LUBDUB_SIGNING_KEYS"))
	})
}

// Serve parses the command line, prints its address, and serves until the process is stopped.
func Serve(newHandler func(redis string) (fasthttp.RequestHandler, error)) {
	listen := flag.String("listen", "127.0.0.1:0", "`address` to listen on")
	redis := flag.String("redis", "redis://127.0.0.1:6379/0", "`URL` of Redis")
	flag.Parse()
	h, err := newHandler(*redis)
	if err != nil {
		log.Fatal(err)
	}
	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s\n", ln.Addr())
	log.Fatal((&fasthttp.Server{Handler: h, NoDefaultServerHeader: true}).Serve(ln))
}

// requestIDs numbers the answers as Lubdub does.
type requestIDs struct {
	prefix string
	count  atomic.Uint64
}

func newRequestIDs() *requestIDs { return &requestIDs{prefix: "req_" + rand.Text()[:10] + "-"} }

func (r *requestIDs) next() string { return r.prefix + strconv.FormatUint(r.count.Add(1), 36) }
