package hub

import (
	"strings"

	"github.com/godwit-dev/godwit/internal/quote"
)

const (
	// maxMessage bounds a stored message of an agent, in bytes: a ConfigMap has up to 1 MiB for 250 clusters, and an
	// agent may send longer messages.
	maxMessage = 240
	// maxNamed bounds the clusters that a message names.
	maxNamed = 3
)

// clip returns a message of an agent as one line of bounded length.
func clip(message string) string { return quote.Clip(quote.Printable(message), maxMessage) }

// firstNames joins the first names of a list.
func firstNames(names []string) string {
	if len(names) > maxNamed {
		return strings.Join(names[:maxNamed], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}
