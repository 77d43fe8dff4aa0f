// Command studio is what the media example works with: a source of clips, a store of files, and a place where clips are published. It keeps
// everything in memory.
package main

import (
	"flag"
	"log"
	"net/http"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8099", "address to listen on")
	pace := flag.Duration("pace", 300*time.Millisecond, "how long it takes to store a resized frame, so that one can watch it")
	flag.Parse()
	s := newStudio()
	s.stored = func(r *http.Request, path string) {
		if _, ok := resizedFrame(path); !ok {
			return
		}
		select {
		case <-time.After(*pace):
		case <-r.Context().Done():
		}
	}
	log.Printf("the studio listens on http://%s: GET /clips/clip-1, GET /published", *listen)
	server := &http.Server{Addr: *listen, Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
