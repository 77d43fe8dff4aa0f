// Command lubdub is the one binary: it serves the API, sweeps, makes tokens, prints its configuration, and shows itself off.
// This package reads settings, wires the parts together and handles signals; what the parts do is theirs.
package main
