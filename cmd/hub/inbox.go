package hub

import (
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// Command is a request of the manager to an agent.
type Command struct {
	Stage   api.Phase `json:"stage"`
	Attempt int64     `json:"attempt"`
	Orders  []Order   `json:"orders"`
}

// Handling is what an agent does with a command.
type Handling string

const (
	// Execute a new command, which supersedes the one before.
	Execute Handling = "Execute"
	// Repeat the last report: the command is known, and the report may be lost.
	Repeat Handling = "Repeat"
	// Ignore a command that is older than the last one.
	Ignore Handling = "Ignore"
)

// Inbox is what an agent stores of a migration: the last command and its last report. The agent stores it before it
// commits the offset of the command's message, and before it executes the command. It executes the commands of a
// migration one after another. After a restart it executes the last command again if that was not finished.
type Inbox struct {
	Last   Command `json:"last"`
	Report *Report `json:"report,omitempty"`
}

// Receive decides what to do with a command, and returns the inbox to store. Commands are ordered by stage and attempt,
// not by a clock.
func (i Inbox) Receive(c Command) (Inbox, Handling) {
	switch {
	case c.Attempt == i.Last.Attempt && c.Stage == i.Last.Stage:
		return i, Repeat
	case c.Attempt <= i.Last.Attempt || StageNumber(c.Stage) == 0:
		return i, Ignore
	}
	return Inbox{Last: c}, Execute
}

// Answer returns the inbox with the report on a command, unless another command has superseded that one.
func (i Inbox) Answer(r Report) Inbox {
	if r.Attempt == i.Last.Attempt && r.Stage == i.Last.Stage {
		i.Report = &r
	}
	return i
}
