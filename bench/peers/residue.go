package main

import (
	"fmt"
	"strings"
)

// residue is what a contestant leaves behind.
type residue struct {
	Fault      string `json:"fault"`
	Contestant string `json:"contestant"`
	Objects    int    `json:"objects"`
	During     state  `json:"during"` // as long as the fault lasts
	After      state  `json:"after"`
	// Requests per object that was left to write, after the restart of a process that was killed.
	Requests float64 `json:"requestsPerRemainingObject,omitempty"`
	Error    string  `json:"error,omitempty"`
}

// state is what etcd and the CRD say, and what the contestant says.
type state struct {
	Old            int      `json:"oldObjects"` // in etcd
	StoredVersions []string `json:"storedVersions"`
	Claim          string   `json:"claim"`
	// Loss means that objects are stored at a version which storedVersions does not list: once the CRD drops that version,
	// they can't be read.
	Loss bool `json:"loss"`
}

func (s state) String() string {
	text := fmt.Sprintf("%d old, storedVersions %s", s.Old, strings.Join(s.StoredVersions, "+"))
	if s.Loss {
		text += ": LOST"
	}
	return text
}
