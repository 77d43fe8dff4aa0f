// Package redistest gives tests the stores that Lubdub runs on: miniredis in the process and a private, real
// redis-server, both empty and with a clock in the test's hand. It is for tests only; a test over the import graph
// holds that nothing else imports it.
package redistest
