package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

// largest is the limit of the SVG's size in bytes, because a README loads it.
const largest = 300 << 10

type options struct {
	cols, rows int
	cast, svg  string
	render     bool
}

func main() {
	var o options
	flag.IntVar(&o.cols, "cols", 136, "columns of the terminal")
	flag.IntVar(&o.rows, "rows", 32, "rows of the terminal")
	flag.StringVar(&o.cast, "cast", "docs/assets/demo.cast", "asciicast to write, or to read with -render")
	flag.StringVar(&o.svg, "svg", "docs/assets/demo.svg", "SVG to write")
	flag.BoolVar(&o.render, "render", false, "render the SVG of an asciicast that exists")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1) //nolint:gocritic // the signal handler ends with the process
	}
}

// run writes both files, or none.
func run(ctx context.Context, o options, command []string) error {
	if o.render == (len(command) > 0) {
		return errors.New("name the command to record, or use -render: recording make demo")
	}
	if o.cols < 20 || o.cols > 300 || o.rows < 5 || o.rows > 100 {
		return fmt.Errorf("a terminal of %d × %d is out of bounds: -cols is 20 to 300, and -rows 5 to 100", o.cols, o.rows)
	}
	var text bytes.Buffer
	if o.render {
		found, err := os.ReadFile(o.cast)
		if err != nil {
			return fmt.Errorf("read the recording: %w", err)
		}
		text.Write(found)
	} else {
		c, err := record(ctx, o.cols, o.rows, command[0], command[1:]...)
		if err != nil {
			return err
		}
		if err := c.write(&text); err != nil {
			return err
		}
	}
	// The file has rounded times. The SVG is rendered from the file, so that -render gives the same bytes.
	c, err := readCast(text.Bytes())
	if err != nil {
		return fmt.Errorf("%s: %w", o.cast, err)
	}
	svg, err := render(c)
	if err != nil {
		return err
	}
	if len(svg) > largest {
		return fmt.Errorf("the SVG has %d bytes, and may have %d: record a shorter command", len(svg), largest)
	}
	if !o.render {
		if err := os.WriteFile(o.cast, text.Bytes(), 0o644); err != nil { //nolint:gosec // a file of the repository
			return err
		}
	}
	if err := os.WriteFile(o.svg, svg, 0o644); err != nil { //nolint:gosec // a file of the repository
		return err
	}
	fmt.Printf("recording: %s, %d outputs; %s, %d KB\n", o.cast, len(c.events), o.svg, len(svg)>>10)
	return nil
}
