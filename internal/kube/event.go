package kube

import (
	"strconv"

	"github.com/godwit-dev/godwit/internal/quote"
)

// maxNote bounds the note of an event, in bytes: NoteLengthLimit of
// k8s.io/kubernetes/pkg/apis/core/validation.
const maxNote = 1024

// EventNote cuts a text to the longest note of an event that the API server accepts.
func EventNote(text string) string { return quote.Clip(text, maxNote) }

// EventAction returns the action of one of several events with the same reason. Events that differ in the note alone are one event with the note
// of the first.
func EventAction(action string, index int) string {
	if index == 0 {
		return action
	}
	return action + strconv.Itoa(index)
}
