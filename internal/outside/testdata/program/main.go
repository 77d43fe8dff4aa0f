// A program of somebody who adds Lubdub to what they have.
package main

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lubdub-io/lubdub/sdk/go/client"
	v1 "github.com/lubdub-io/lubdub/sdk/go/v1"
)

func main() {
	sent := prometheus.NewCounter(prometheus.CounterOpts{Name: "sent_total"})
	sent.Inc()
	if _, err := client.New("https://lubdub.example", client.Token("x")); err != nil {
		panic(err)
	}
	fmt.Println(v1.CodeTaskExpired)
}
