package main

import (
	"maps"
	"strconv"
	"strings"
)

// part is one round, or one fault, in a file of its own: a measurement that is interrupted continues after its last part.
// Rounds are whole, because turns are compared within a round.
type part struct {
	conditions
	Environment environment `json:"environment"`
	Turns       []turn      `json:"turns,omitempty"`
	Faults      []residue   `json:"faults,omitempty"`
	// Unavailable are contestants that could not be built, with the cause.
	Unavailable map[string]string `json:"unavailable,omitempty"`
}

// conditions are the same in all parts of a measurement.
type conditions struct {
	Objects      int     `json:"objects"`
	FaultObjects int     `json:"faultObjects"`
	LimitSeconds float64 `json:"limitSeconds"`
}

const (
	roundPrefix = "round-"
	faultPrefix = "fault-"
)

func roundPart(round int) string    { return roundPrefix + strconv.Itoa(round) }
func faultPart(fault string) string { return faultPrefix + fault }

// roundOf is the number of the round that a part is.
func roundOf(name string) (round int, is bool) {
	number, is := strings.CutPrefix(name, roundPrefix)
	round, err := strconv.Atoi(number)
	return round, is && err == nil
}

// faultOf is the name of the fault that a part is.
func faultOf(name string) string { return strings.TrimPrefix(name, faultPrefix) }

// add adds a part to the result. The environment is that of the last part, with the highest load.
func (r *result) add(p part) {
	load := max(r.Environment.Load, p.Environment.Load)
	r.Environment = p.Environment
	r.Environment.Load = load
	r.Turns = append(r.Turns, p.Turns...)
	r.Faults = append(r.Faults, p.Faults...)
	maps.Copy(r.Unavailable, p.Unavailable)
}
