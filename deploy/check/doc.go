// Package check holds what deploy/ has for Helm, Kubernetes and Compose against the tools that will read it and against the
// program's own settings. It is a separate module: Helm's and Kubernetes's packages bring dependencies that Lubdub has no use
// for. `make test-deploy` runs it.
package check
