// Package bench measures Lubdub from outside, over real sockets, as its workers see it, beside baselines on the same
// machine in the same minutes. It knows the wire and nothing of the inside. Results are ratios and CPU per beat:
// absolute rates drift from machine to machine.
package bench
