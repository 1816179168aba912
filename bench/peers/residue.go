package main

import (
	"fmt"
	"strconv"
	"strings"
)

// residue is what a contestant leaves behind.
type residue struct {
	Fault      string `json:"fault"`
	Contestant string `json:"contestant"`
	Objects    int    `json:"objects"`
	During     state  `json:"during"` // as long as the fault lasts
	After      state  `json:"after"`
	// Repeated are writes of objects that were written already, by a process that was killed and started again.
	Repeated *int64 `json:"repeatedWrites,omitempty"`
	Error    string `json:"error,omitempty"`
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

// repeated is a cell of a table.
func (r residue) repeated() string {
	if r.Repeated == nil {
		return "-"
	}
	return strconv.FormatInt(*r.Repeated, 10)
}

func (s state) String() string {
	text := fmt.Sprintf("%d old, storedVersions %s", s.Old, strings.Join(s.StoredVersions, "+"))
	if s.Loss {
		text += ": LOST"
	}
	return text
}
