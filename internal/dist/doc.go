// Command dist completes the output of `make dist`: it checks that each file is what its name says, and writes SBOMs (CycloneDX JSON)
// and the checksums of all files. It knows nothing of the program.
package main
