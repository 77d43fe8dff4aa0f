// Command dist finishes what `make dist` has built: it checks that each file is what its name says, and writes what each is made
// of (an SBOM in CycloneDX's JSON) and the checksums of all. It knows nothing of the program that it packs.
package main
