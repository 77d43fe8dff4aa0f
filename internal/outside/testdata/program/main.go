// A program of somebody who adds Lubdub to what they have.
package main

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

func main() {
	sent := prometheus.NewCounter(prometheus.CounterOpts{Name: "sent_total"})
	sent.Inc()
	fmt.Println(v1.CodeTaskExpired)
}
