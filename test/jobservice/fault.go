package jobservice

import (
	"net/http"
	"strings"
)

// FaultKind says how a request fails.
type FaultKind string

// Kinds of faults.
const (
	// Lose closes the connection before the request is carried out.
	Lose FaultKind = "Lose"
	// Drop carries the request out and closes the connection.
	Drop FaultKind = "Drop"
	// Hang carries the request out and never answers.
	Hang FaultKind = "Hang"
	// Garbage carries the request out and answers with a long page of HTML.
	Garbage FaultKind = "Garbage"
	// Conflict answers 409 and does nothing.
	Conflict FaultKind = "Conflict"
	// Unavailable answers 503 and does nothing.
	Unavailable FaultKind = "Unavailable"
)

// Fault makes requests fail.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// Pattern is the pattern of the requests, such as POST /databases.
	Pattern string `json:"pattern"`
	// Times is the number of requests that fail; 0 means all.
	Times int `json:"times,omitempty"`
}

// takeFault returns the fault for a request; its Kind is empty without one.
func (s *service) takeFault(pattern string) Fault {
	for i := range s.control.Faults {
		f := &s.control.Faults[i]
		if f.Pattern != pattern || f.Times < 0 {
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				f.Times = -1 // The fault is used up.
			}
		}
		return *f
	}
	return Fault{}
}

// before reports whether the request fails before the service carries it out.
func (f Fault) before() bool { return f.Kind == Lose || f.Kind == Conflict || f.Kind == Unavailable }

func (f Fault) answer(w http.ResponseWriter, r *http.Request) {
	switch f.Kind {
	case Conflict:
		http.Error(w, `{"error":"conflict"}`, http.StatusConflict)
	case Unavailable:
		http.Error(w, `{"error":"unavailable"}`, http.StatusServiceUnavailable)
	case Garbage:
		_, _ = w.Write([]byte("<html>\x1b[2J" + strings.Repeat("garbage ", 10_000)))
	case Hang:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	default:
		panic(http.ErrAbortHandler) // It closes the connection without an answer.
	}
}
