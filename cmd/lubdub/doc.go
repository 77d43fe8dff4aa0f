// Command lubdub is the one binary: it serves the API, sweeps, creates tokens, prints its configuration, and runs a demonstration.
// This package reads settings, wires the parts together and handles signals; other packages implement the parts.
package main
