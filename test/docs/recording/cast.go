package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// cast is a recording in the form of asciicast v2: https://docs.asciinema.org/manual/asciicast/v2/
type cast struct {
	header header
	events []event
}

// header has no time of the run, so that two recordings differ as little as possible.
type header struct {
	Version int               `json:"version"`
	Width   int               `json:"width"`
	Height  int               `json:"height"`
	Title   string            `json:"title"`
	Env     map[string]string `json:"env"`
}

// event is an output, and its time since the beginning.
type event struct {
	at   time.Duration
	text string
}

const output = "o"

// write writes a line for the header, and one for each event.
func (c cast) write(w io.Writer) error {
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(c.header); err != nil {
		return err
	}
	for _, e := range c.events {
		if err := lines.Encode([]any{json.Number(fmt.Sprintf("%.2f", e.at.Seconds())), output, e.text}); err != nil {
			return err
		}
	}
	return nil
}

func readCast(text []byte) (c cast, err error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		return c, errors.New("the recording is empty")
	}
	if err := json.Unmarshal(lines.Bytes(), &c.header); err != nil {
		return c, fmt.Errorf("read the header of the recording: %w", err)
	}
	if c.header.Version != 2 || c.header.Width < 1 || c.header.Height < 1 {
		return c, errors.New("the recording is not an asciicast v2 with a width and a height")
	}
	for number := 2; lines.Scan(); number++ {
		var fields [3]json.RawMessage
		var seconds float64
		var kind, text string
		if err := errors.Join(json.Unmarshal(lines.Bytes(), &fields), json.Unmarshal(fields[0], &seconds),
			json.Unmarshal(fields[1], &kind), json.Unmarshal(fields[2], &text)); err != nil {
			return c, fmt.Errorf("read line %d of the recording: %w", number, err)
		}
		if kind == output {
			c.events = append(c.events, event{time.Duration(seconds * float64(time.Second)), text})
		}
	}
	return c, lines.Err()
}
