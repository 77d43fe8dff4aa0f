package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"os"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM writes the SBOM of a program next to it. It is read from the program's build information, so that it lists what was linked
// and not what go.mod would allow.
func writeSBOM(path, name, version, date string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	sum, err := sumOf(path)
	if err != nil {
		return err
	}
	f, err := os.Create(path + sbomSuffix)
	if err != nil {
		return err
	}
	err = cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(sbom(info, name, version, date, sum), cdx.SpecVersion1_6)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

func sbom(info *debug.BuildInfo, name, version, date, sum string) *cdx.BOM {
	program := module(cdx.ComponentTypeApplication, info.Main.Path, "v"+version)
	program.Name, program.Version = name, version
	program.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}}
	parts := []cdx.Component{module(cdx.ComponentTypeLibrary, "std", info.GoVersion)}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		of := dep.Version
		if of == "(devel)" { // the SDK, which is in this tree and is tagged with it
			of = "v" + version
		}
		c := module(cdx.ComponentTypeLibrary, dep.Path, of)
		if hash, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(dep.Sum, "h1:")); err == nil && len(hash) > 0 {
			c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(hash)}} // as in go.sum, of the module's files
		}
		parts = append(parts, c)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: date, Component: &program}
	bom.Components = &parts
	return bom
}

// module returns a Go module with its package URL, which must be in lower case.
func module(kind cdx.ComponentType, path, version string) cdx.Component {
	purl := "pkg:golang/" + strings.ToLower(path) + "@" + url.QueryEscape(version) + "?type=module"
	return cdx.Component{Type: kind, BOMRef: purl, Name: path, Version: version, PackageURL: purl}
}
