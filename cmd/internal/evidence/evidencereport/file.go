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
	return h, nil
}

// decode reads the document of a file.
func decode[T any](f File) (T, error) {
	var document T
	err := json.NewDecoder(bytes.NewReader(f.Text)).Decode(&document)
	return document, err
}
