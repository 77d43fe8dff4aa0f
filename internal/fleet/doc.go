// Package fleet simulates workers that talk to a running Lubdub over plain HTTP.
//
// Each task follows a script: its worker starts, beats, reports, finishes, fails, honours or ignores a cancel, or simply falls
// silent. The script states in advance how the task must end. After the end, the fleet reads the task back through the API and
// judges state, reason, evidence, and how long the verdict took. So a fleet is both a demonstration and a test. Mishaps of the fleet
// itself, such as a worker that is late on a busy machine, do not end it: they are reported and counted separately, and a summary with
// too many of them proves nothing.
//
// The package uses the wire contract (sdk/go/v1) and nothing of the server, so a fleet can run against any deployment.
package fleet
