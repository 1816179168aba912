package sign

import (
	"bytes"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
	"github.com/godwit-dev/godwit/tools/release/internal/bundle"
)

// What in-toto and SLSA call the documents.
const (
	payloadType   = "application/vnd.in-toto+json"
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://slsa.dev/provenance/v1"
	// buildType and builder say how and by whom a release is made: by `make release`, on a machine of a maintainer. That is level 1
	// of SLSA's build track.
	buildType = artifact.Homepage + "/blob/main/docs/adr/0067-releases.md"
	builder   = artifact.Homepage + "/blob/main/CONTRIBUTING.md#make-a-release"
)

// The statement of in-toto, and SLSA's provenance, by the names of their specifications.
type (
	statement struct {
		Type          string     `json:"_type"`
		Subject       []resource `json:"subject"`
		PredicateType string     `json:"predicateType"`
		Predicate     provenance `json:"predicate"`
	}
	resource struct {
		Name   string            `json:"name,omitempty"`
		URI    string            `json:"uri,omitempty"`
		Digest map[string]string `json:"digest,omitempty"`
	}
	provenance struct {
		BuildDefinition buildDefinition `json:"buildDefinition"`
		RunDetails      runDetails      `json:"runDetails"`
	}
	buildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		ResolvedDependencies []resource        `json:"resolvedDependencies"`
	}
	runDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	}
)

// statement says from which commit, and with which version of Go, the files of a release were made.
func (r Release) statement(sums []byte) ([]byte, error) {
	commit, err := r.commit()
	if err != nil {
		return nil, err
	}
	golang, err := r.golang(sums)
	if err != nil {
		return nil, err
	}
	s := statement{Type: statementType, Subject: subjects(sums), PredicateType: predicateType}
	s.Predicate.BuildDefinition = buildDefinition{
		BuildType:          buildType,
		ExternalParameters: map[string]string{"repository": artifact.Homepage, "command": "make release VERSION=" + r.Version},
		ResolvedDependencies: []resource{
			{URI: "git+" + artifact.Homepage + "@refs/tags/" + r.Version, Digest: map[string]string{"gitCommit": commit}},
			{Name: golang, URI: "https://go.dev/dl/#" + golang},
		},
	}
	s.Predicate.RunDetails.Builder.ID = builder
	return json.Marshal(s)
}

// subjects are the files of a list of checksums.
func subjects(sums []byte) []resource {
	var all []resource
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		all = append(all, resource{Name: name, Digest: map[string]string{"sha256": sum}})
	}
	return all
}

// commit is the commit of module 1, whose tag is the version alone.
func (r Release) commit() (string, error) {
	tags, err := r.read(artifact.Tags)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(tags)) {
		if tag, commit, _ := strings.Cut(strings.TrimSpace(line), " "); tag == r.Version {
			return commit, nil
		}
	}
	return "", fmt.Errorf("%s has no tag %s", artifact.Tags, r.Version)
}

// golang is the version of Go with which the program of the first archive was compiled.
func (r Release) golang(sums []byte) (string, error) {
	for _, file := range subjects(sums) {
		if !strings.HasPrefix(file.Name, artifact.Program+"_"+r.Version+"_") || strings.HasSuffix(file.Name, ".json") {
			continue
		}
		content, err := r.read(file.Name)
		if err != nil {
			return "", err
		}
		files, err := bundle.Read(file.Name, content)
		if err != nil {
			return "", err
		}
		for _, f := range files {
			if f.Name == artifact.Program || f.Name == artifact.Program+".exe" {
				info, err := buildinfo.Read(bytes.NewReader(f.Content))
				if err != nil {
					return "", err
				}
				return info.GoVersion, nil
			}
		}
	}
	return "", fmt.Errorf("%s has no archive of the program", r.Dir)
}

// commitOf returns the commit in a verified envelope, if the provenance is about each file of the release and no other.
func commitOf(envelope, sums []byte) (string, error) {
	var e struct{ PayloadType, Payload string }
	if err := json.Unmarshal(envelope, &e); err != nil {
		return "", err
	}
	payload, err := base64.StdEncoding.DecodeString(e.Payload)
	if err != nil {
		return "", err
	}
	var s statement
	if err := json.Unmarshal(payload, &s); err != nil {
		return "", err
	}
	if e.PayloadType != payloadType || s.Type != statementType || s.PredicateType != predicateType {
		return "", fmt.Errorf("%s is a %s with a %s", artifact.Provenance, s.Type, s.PredicateType)
	}
	got, err := json.Marshal(s.Subject)
	if err != nil {
		return "", err
	}
	want, err := json.Marshal(subjects(sums))
	if err != nil {
		return "", err
	}
	if !bytes.Equal(got, want) {
		return "", fmt.Errorf("%s is about other files than %s", artifact.Provenance, artifact.Checksums)
	}
	for _, d := range s.Predicate.BuildDefinition.ResolvedDependencies {
		if commit := d.Digest["gitCommit"]; commit != "" {
			return commit, nil
		}
	}
	return "", fmt.Errorf("%s names no commit", artifact.Provenance)
}
