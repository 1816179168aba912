// Command plot draws the results of `make bench-peers` and `make bench-scale` as SVG. It writes the same numbers as tables into
// the page about them, between its markers. It reads the results from bench/out.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/bench/internal/result"
)

func main() {
	in := flag.String("in", "out", "folder of the results")
	images := flag.String("images", "../docs/assets", "folder of the plots")
	page := flag.String("page", "../docs/explanation/benchmarks.md", "the page whose numbers are replaced")
	flag.Parse()
	if err := run(*in, *images, *page); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

func run(in, images, page string) error {
	p, err := read[result.Peers](filepath.Join(in, "peers.json"))
	compared := !errors.Is(err, fs.ErrNotExist)
	if err != nil && compared {
		return err
	}
	scales, err := readScales(in)
	if err != nil {
		return err
	}
	if !compared && len(scales) == 0 {
		return fmt.Errorf("%s has no results: run `make bench-peers` or `make bench-scale` first", in)
	}
	if err := os.MkdirAll(images, 0o755); err != nil { //nolint:gosec // documentation
		return err
	}
	tables := map[string]string{"peers": "", "scale": scaleTable(scales)}
	if compared {
		tables["peers"] = peersTable(p)
		if err := drawSpeed(filepath.Join(images, "peers-speed.svg"), p); err != nil {
			return err
		}
		if err := drawCost(filepath.Join(images, "peers-cost.svg"), p); err != nil {
			return err
		}
	}
	if len(scales) > 0 {
		if err := drawScale(filepath.Join(images, "scale-memory.svg"), scales); err != nil {
			return err
		}
	}
	return replace(page, tables)
}

func readScales(in string) ([]result.Scale, error) {
	files, err := filepath.Glob(filepath.Join(in, "scale-*.json"))
	if err != nil {
		return nil, err
	}
	var scales []result.Scale
	for _, file := range files {
		s, err := read[result.Scale](file)
		if err != nil {
			return nil, err
		}
		scales = append(scales, s)
	}
	slices.SortFunc(scales, func(a, b result.Scale) int { return cmp.Compare(a.Objects, b.Objects) })
	return scales, nil
}

func read[T any](path string) (value T, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return value, err
	}
	if err := json.Unmarshal(text, &value); err != nil {
		return value, fmt.Errorf("read %s: %w", path, err)
	}
	return value, nil
}

// replace puts the tables between the markers of a page.
func replace(page string, tables map[string]string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	for name, table := range tables {
		begin, end := []byte("<!-- "+name+" begin -->\n"), []byte("<!-- "+name+" end -->")
		before, rest, found := bytes.Cut(text, begin)
		_, after, ends := bytes.Cut(rest, end)
		if !found || !ends {
			return fmt.Errorf("%s has no markers %s and %s", page, bytes.TrimSpace(begin), end)
		}
		if table == "" {
			continue // not measured: the table of the last measurement stays
		}
		text = slices.Concat(before, begin, []byte(strings.TrimSpace(table)+"\n"), end, after)
	}
	return os.WriteFile(page, text, 0o644) //nolint:gosec // documentation
}
