// Package sbom writes the bill of materials of a program, from the build information that the Go linker has written into it.
package sbom

import (
	"bytes"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/generate/bin"
	"github.com/rs/zerolog"
)

// Of returns the bill of materials of a program, in CycloneDX's JSON.
func Of(program string, at time.Time) ([]byte, error) {
	g, err := bin.NewGenerator(program, bin.WithIncludeStdlib(true), bin.WithLogger(zerolog.Nop()))
	if err != nil {
		return nil, err
	}
	bom, err := g.Generate()
	if err != nil {
		return nil, err
	}
	bom.Metadata.Timestamp = at.UTC().Format(time.RFC3339)
	var out bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Read reads a bill of materials.
func Read(text []byte) (*cyclonedx.BOM, error) {
	bom := &cyclonedx.BOM{}
	return bom, cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(bom)
}
