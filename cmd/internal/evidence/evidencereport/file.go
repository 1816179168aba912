package evidencereport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/format"
)

// File is a file of a directory with the output of commands.
type File struct {
	// Name is relative to the directory.
	Name string
	// Cluster is the name of the folder, or of the directory for a file that is in no folder.
	Cluster string
	// Folder means that the file is in the folder of a cluster.
	Folder bool
	Text   []byte
	Time   time.Time
	// Err is why the file could not be read.
	Err error
}

// header is what all documents have.
type header struct {
	APIVersion      string     `json:"apiVersion"`
	Kind            string     `json:"kind"`
	Time            *time.Time `json:"time"`
	DurationSeconds float64    `json:"durationSeconds"`
	Version         string     `json:"version"`

	Origin *render.Origin `json:"origin"`
	// Items of runs have a duration each, and those of plans of all domains the UID of their cluster.
	Items []struct {
		DurationSeconds float64 `json:"durationSeconds"`
		ClusterUID      string  `json:"clusterUID"`
	} `json:"items"`
}

// duration is the time that the command took: its items ran at the same time.
func (h header) duration() float64 {
	longest := h.DurationSeconds
	for _, i := range h.Items {
		longest = max(longest, i.DurationSeconds)
	}
	return longest
}

func (f File) header() (header, *Unread) {
	if f.Err != nil {
		return header{}, &Unread{f.Name, render.Cause{Reason: ReasonFileUnreadable.Name, Message: f.Err.Error()}}
	}
	var h header
	if err := json.Unmarshal(f.Text, &h); err != nil {
		return h, &Unread{f.Name, render.Cause{Reason: ReasonFileUnreadable.Name, Message: fmt.Sprintf("the file is not the JSON output of a command: %v", err)}}
	}
	if h.Kind == "" {
		return h, &Unread{f.Name, render.Cause{Reason: ReasonKindUnknown.Name, Message: "the document has no kind"}}
	}
	group, _, _ := strings.Cut(render.APIVersion, "/")
	if h.APIVersion != render.APIVersion && strings.HasPrefix(h.APIVersion, group+"/") {
		return h, &Unread{f.Name, render.Cause{Reason: ReasonNewerFormat.Name, Message: fmt.Sprintf("the document has apiVersion %q, and this release of Godwit reads %s: %s", h.APIVersion, render.APIVersion, format.Do)}}
	}
	if f.Folder && h.Origin == nil && len(h.Items) > 0 && h.Items[0].ClusterUID != "" {
		h.Origin = &render.Origin{ClusterUID: h.Items[0].ClusterUID, Version: h.Version}
	}
	return h, nil
}

// decode reads the document of a file.
func decode[T any](f File) (T, error) {
	var document T
	err := json.NewDecoder(bytes.NewReader(f.Text)).Decode(&document)
	return document, err
}
