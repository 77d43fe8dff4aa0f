package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// clipName is the name of a clip that the source has.
var clipName = regexp.MustCompile(`^clip-([1-9][0-9]{0,2})$`)

// maxBody bounds what is stored: more than a clip has.
const maxBody = 1 << 20

// studio is the services around the pipeline: the source of the clips, the store of the frames and the place where clips are published.
type studio struct {
	// stored is called before the answer to each PUT of a file, with the file's path.
	stored func(r *http.Request, path string)

	mu        sync.Mutex
	requested map[string]int            // by clip: how often it was requested
	files     map[string][]byte         // by path
	puts      map[string]int            // by path: how often the file was stored
	published map[string]map[string]int // by clip and idempotency key: how often it was sent
	results   map[string][]byte         // by clip: what was published
}

func newStudio() *studio {
	return &studio{
		stored: func(*http.Request, string) {}, requested: map[string]int{}, files: map[string][]byte{}, puts: map[string]int{},
		published: map[string]map[string]int{}, results: map[string][]byte{},
	}
}

func (s *studio) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /clips/{clip}", s.source)
	mux.HandleFunc("PUT /files/{path...}", s.put)
	mux.HandleFunc("GET /files/{path...}", s.get)
	mux.HandleFunc("PUT /published/{clip}", s.publish)
	mux.HandleFunc("GET /published", s.list)
	return mux
}

// source returns a clip. It is busy the first time that a clip whose number is divisible by 3 is requested.
func (s *studio) source(w http.ResponseWriter, r *http.Request) {
	clip := r.PathValue("clip")
	name := clipName.FindStringSubmatch(clip)
	if name == nil {
		http.Error(w, "there is no such clip", http.StatusNotFound)
		return
	}
	number, _ := strconv.Atoi(name[1])
	s.mu.Lock()
	s.requested[clip]++
	first := s.requested[clip] == 1
	s.mu.Unlock()
	if first && number%3 == 0 {
		busy(w)
		return
	}
	for i := range clipFrames {
		_, _ = w.Write(frame(number, i)) // a client that has gone needs no answer
	}
}

func busy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "busy", http.StatusServiceUnavailable)
}

// put stores a file. A file that is stored again replaces the one before.
func (s *studio) put(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	path := r.PathValue("path")
	s.mu.Lock()
	s.files[path] = body
	s.puts[path]++
	s.mu.Unlock()
	s.stored(r, path)
	w.WriteHeader(http.StatusNoContent)
}

func (s *studio) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	body, ok := s.files[r.PathValue("path")]
	s.mu.Unlock()
	if !ok {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	_, _ = w.Write(body) // a client that has gone needs no answer
}

// publish publishes a clip once for each idempotency key. It answers the first request for a clip whose number is divisible by 4 as if it
// had failed, so that the clip is sent again.
func (s *studio) publish(w http.ResponseWriter, r *http.Request) {
	clip, key := r.PathValue("clip"), r.Header.Get("Idempotency-Key")
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	name := clipName.FindStringSubmatch(clip)
	if err != nil || name == nil || key == "" {
		http.Error(w, "a clip needs its name, an Idempotency-Key and at most 1 MiB", http.StatusBadRequest)
		return
	}
	number, _ := strconv.Atoi(name[1])
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.published[clip] == nil {
		s.published[clip] = map[string]int{}
	}
	s.published[clip][key]++
	if s.published[clip][key] == 1 {
		s.results[clip] = body
		if number%4 == 0 {
			busy(w)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// list returns how often each clip was sent, by clip and idempotency key.
func (s *studio) list(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.sent()) // a client that has gone needs no answer
}

// sent returns a copy of published.
func (s *studio) sent() map[string]map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]map[string]int{}
	for clip, keys := range s.published {
		all[clip] = maps.Clone(keys)
	}
	return all
}

// resizedFrame returns the number of the resized frame that a file is; false: it is another file.
func resizedFrame(path string) (number int, ok bool) {
	_, name, ok := strings.Cut(path, "/small/")
	if !ok {
		return 0, false
	}
	_, err := fmt.Sscanf(name, "%d.ppm", &number)
	return number, err == nil
}
