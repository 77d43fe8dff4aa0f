// Command etcd keeps leases of an etcd alive, which is how etcd tracks live workers: in etcd's best way, many leases over one stream,
// several clients, requests under way without waiting for earlier answers.
//
// The comparison favours etcd: a lease's life is kept only in the leader's memory (nothing is written to its log, and there is no
// progress), authentication is off, and one node has no peers to agree with.
//
// It prints one line of JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

type result struct {
	Ops     int64   `json:"ops"` // keep-alives that were answered
	Seconds float64 `json:"seconds"`
}

// clients is the number of clients; each has one stream for its share of the leases.
const clients = 4

func main() {
	log.SetFlags(0)
	url := flag.String("url", "http://127.0.0.1:2379", "`URL` of etcd")
	length := flag.Duration("for", 5*time.Second, "how long to keep leases alive")
	leases := flag.Int("leases", 256, "leases in all, 4 or more")
	flag.Parse()
	r, err := measure(context.Background(), *url, *length, *leases)
	if err != nil {
		log.Fatal("etcd: ", err)
	}
	_ = json.NewEncoder(os.Stdout).Encode(r)
}

func measure(ctx context.Context, url string, length time.Duration, leases int) (r result, err error) {
	var streams [clients]*stream
	for i := range streams {
		share := (leases*(i+1))/clients - (leases*i)/clients
		if streams[i], err = open(ctx, url, share); err != nil {
			return r, err
		}
		defer streams[i].close()
	}
	begin := time.Now()
	var ops atomic.Int64
	failed := make(chan error, clients)
	for _, s := range streams {
		go func() { failed <- s.run(begin.Add(length), &ops) }()
	}
	for range streams {
		err = errors.Join(err, <-failed)
	}
	return result{Ops: ops.Load(), Seconds: time.Since(begin).Seconds()}, err
}

// stream is one client with its leases.
type stream struct {
	client *clientv3.Client
	wire   pb.Lease_LeaseKeepAliveClient
	leases []clientv3.LeaseID
}

func open(ctx context.Context, url string, leases int) (*stream, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	s := &stream{client: client}
	for range leases {
		granted, err := client.Grant(ctx, 90)
		if err != nil {
			return nil, errors.Join(err, client.Close())
		}
		s.leases = append(s.leases, granted.ID)
	}
	// The client's own KeepAlive waits a third of the lease's life between two requests; the stream below it does not.
	s.wire, err = pb.NewLeaseClient(client.ActiveConnection()).LeaseKeepAlive(ctx)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return s, nil
}

func (s *stream) close() { _ = s.client.Close() }

// run keeps the leases alive in turn until the time is over. As many requests are under way as there are leases.
func (s *stream) run(until time.Time, ops *atomic.Int64) error {
	window := make(chan struct{}, len(s.leases))
	received := make(chan error, 1)
	go func() {
		for {
			answer, err := s.wire.Recv()
			if err == io.EOF {
				err = nil
			}
			if err == nil && answer != nil && answer.TTL <= 0 {
				err = fmt.Errorf("lease %x is gone", answer.ID)
			}
			if err != nil || answer == nil {
				received <- err
				return
			}
			ops.Add(1)
			<-window
		}
	}()
	for i := 0; time.Now().Before(until); i++ {
		select {
		case err := <-received:
			return errors.Join(errors.New("the stream ended early"), err)
		case window <- struct{}{}:
		}
		if err := s.wire.Send(&pb.LeaseKeepAliveRequest{ID: int64(s.leases[i%len(s.leases)])}); err != nil {
			return errors.Join(err, <-received)
		}
	}
	return errors.Join(s.wire.CloseSend(), <-received)
}
