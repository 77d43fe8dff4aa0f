// Package fleet is a small crowd of simulated workers that talk to a running Lubdub over plain HTTP.
//
// Each task is played after a script: its worker starts, beats, reports, finishes, fails, heeds a cancel or does
// not, or simply goes silent. The script says beforehand what must become of the task. When it has, the fleet
// reads the task back through the API and judges: state, reason, evidence, and how long the verdict took. So a
// fleet is a demonstration and a proof at once. What goes amiss in the fleet itself, such as a worker that is late on
// a busy machine, ends nothing: it is told and counted apart, and a summary with too much of it proves nothing.
//
// It knows the wire contract (sdk/go/v1) and nothing of the server: it can be pointed at any deployment.
package fleet
