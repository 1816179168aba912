// Command recording runs a command on a terminal, and writes what the terminal shows as an asciicast and as an animated SVG.
//
//	recording [-cols N] [-rows N] [-cast FILE] [-svg FILE] COMMAND...
//	recording -render [-cast FILE] [-svg FILE]
//
// The asciicast has the run with its real times. The SVG is rendered from the asciicast alone, and the same asciicast gives the
// same bytes. The SVG cuts idle times, shows lines that come at once one after the other, and lasts half a minute at most. It
// has no script and no reference to another file, follows the colour scheme of the reader, and shows the end to a reader who
// prefers no motion.
//
// # Reading order
//
// cast.go is the format, record.go writes it, pace.go cuts its idle times, screen.go is the terminal, svg.go draws, and main.go
// is the command. A file uses only files before it.
package main
