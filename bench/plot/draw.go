package main

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// The sizes of the plots, and the colours of their bars: a colour-blind reader can tell them apart.
const (
	width     = 20 * vg.Centimeter
	barWidth  = 12 // points
	rowHeight = 0.85 * vg.Centimeter
	// legendRoom leaves the right of a plot to its legend.
	legendRoom = 1.4
)

var (
	ours   = color.NRGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}
	others = color.NRGBA{R: 0x99, G: 0x99, B: 0x99, A: 0xff}
	second = color.NRGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff}
)

func drawPeers(folder string, p peers) error {
	if err := drawSpeed(filepath.Join(folder, "peers-speed.svg"), p); err != nil {
		return err
	}
	return drawCost(filepath.Join(folder, "peers-cost.svg"), p)
}

// rows is a plot with one row for each name, the first on top.
func rows(title, axis string, names []string) *plot.Plot {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"} // as wide as Arial and Helvetica
	p := plot.New()
	p.Title.Text, p.X.Label.Text = title, axis
	p.X.Min = 0
	p.Title.Padding = vg.Points(8)
	var labels []string
	for _, name := range slices.Backward(names) {
		// Where a reader's font is wider than the one that the plot is made with, the text grows to the right.
		labels = append(labels, name+strings.Repeat(" ", len(name)/3))
	}
	p.NominalY(labels...)
	p.X.Tick.Marker = plot.TickerFunc(ticks)
	return p
}

// ticks are the usual ones, without zeros after the point.
func ticks(from, to float64) []plot.Tick {
	all := plot.DefaultTicks{}.Ticks(from, to)
	for i := range all {
		if !all[i].IsMinor() {
			all[i].Label = strconv.FormatFloat(all[i].Value, 'g', -1, 64)
		}
	}
	return all
}

func drawSpeed(path string, p peers) error {
	labels := p.rows()
	var names []string
	mine, theirs := make(plotter.Values, len(labels)), make(plotter.Values, len(labels))
	for i, l := range labels {
		names = append(names, l.text)
		at, of := len(labels)-1-i, p.Medians[l.id].PerSecond
		if isOurs(l.id) {
			mine[at] = of
		} else {
			theirs[at] = of
		}
	}
	chart := rows(fmt.Sprintf("Objects rewritten per second (%d objects, %d CPUs)", p.Objects, p.Environment.CPUs), "objects/s", names)
	return save(path, chart, len(names), []series{{values: mine, fill: ours}, {values: theirs, fill: others}})
}

func isOurs(id string) bool { return len(id) > 6 && id[:6] == "godwit" }

func drawCost(path string, p peers) error {
	labels := p.rows()
	var names []string
	server, etcd := make(plotter.Values, len(labels)), make(plotter.Values, len(labels))
	for i, l := range labels {
		names = append(names, l.text)
		server[len(labels)-1-i], etcd[len(labels)-1-i] = p.Medians[l.id].APIServer, p.Medians[l.id].Etcd
	}
	chart := rows("CPU time of the servers per object", "milliseconds", names)
	return save(path, chart, len(names), []series{{"kube-apiserver", server, ours}, {"etcd", etcd, second}})
}

func drawScale(path string, scales []scale) error {
	var names []string
	memory := make(plotter.Values, len(scales))
	for i, s := range scales {
		names = append(names, fmt.Sprintf("%d objects", s.Objects))
		memory[len(scales)-1-i] = mib(max(s.KilledRSS, s.ResumeRSS))
	}
	return save(path, rows("Peak memory of godwit crd run", "MiB", names), len(names), []series{{values: memory, fill: ours}})
}

// series are the bars of one colour, which stand on those of the series before.
type series struct {
	name   string
	values plotter.Values
	fill   color.Color
}

func save(path string, chart *plot.Plot, count int, all []series) error {
	var below *plotter.BarChart
	most := 0.0
	for row := range count {
		sum := 0.0
		for _, s := range all {
			sum += s.values[row]
		}
		most = max(most, sum)
	}
	for _, s := range all {
		bars, err := plotter.NewBarChart(s.values, vg.Points(barWidth))
		if err != nil {
			return fmt.Errorf("draw %s: %w", path, err)
		}
		bars.Horizontal, bars.Color, bars.LineStyle.Width = true, s.fill, 0
		if below != nil {
			bars.StackOn(below)
		}
		below = bars
		chart.Add(bars)
		if s.name != "" {
			chart.Legend.Add(s.name+"   ", bars)
		}
	}
	chart.Legend.Top, chart.X.Max = true, most*1.1
	if len(all) > 1 && all[0].name != "" {
		chart.X.Max = most * legendRoom
	}
	if err := chart.Save(width, vg.Length(count)*rowHeight+2.5*vg.Centimeter, path); err != nil {
		return err
	}
	return addFonts(path)
}

// addFonts names the fonts of the same width that other systems have.
func addFonts(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text = bytes.ReplaceAll(text, []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif"))
	return os.WriteFile(path, text, 0o644) //nolint:gosec // documentation
}
