package main

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/result"
)

// The sizes of the plots, and the colours of their bars. A colour-blind reader can distinguish the colours.
const (
	width     = 20 * vg.Centimeter
	barWidth  = 12 // points
	rowHeight = 0.85 * vg.Centimeter
	// legendRoom reserves the right of a plot for its legend.
	legendRoom = 1.4
)

var (
	ours   = color.NRGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}
	others = color.NRGBA{R: 0x99, G: 0x99, B: 0x99, A: 0xff}
	second = color.NRGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff}
)

// rows returns a plot with one row for each name, the first on top.
func rows(title, axis string, names []string) *plot.Plot {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"} // as wide as Arial and Helvetica
	p := plot.New()
	p.Title.Text, p.X.Label.Text = title, axis
	p.X.Min = 0
	p.Title.Padding = vg.Points(8)
	var labels []string
	for _, name := range slices.Backward(names) {
		// The spaces leave room for a reader whose font is wider than the font of the plot.
		labels = append(labels, name+strings.Repeat(" ", len(name)/3))
	}
	p.NominalY(labels...)
	p.X.Tick.Marker = plot.TickerFunc(ticks)
	return p
}

// ticks returns the default ticks of the plot library, without zeros after the point.
func ticks(from, to float64) []plot.Tick {
	all := plot.DefaultTicks{}.Ticks(from, to)
	for i := range all {
		if !all[i].IsMinor() {
			all[i].Label = strconv.FormatFloat(all[i].Value, 'g', -1, 64)
		}
	}
	return all
}

// series has the bars of one colour, the first on top. They begin where the bars of the series before end.
type series struct {
	name   string
	fill   color.Color
	values []float64
}

func drawSpeed(path string, p result.Peers) error {
	var names []string
	our, other := series{fill: ours}, series{fill: others}
	for _, row := range rowsOf(p) {
		names = append(names, row.text)
		speed := p.Medians[row.id].PerSecond
		if strings.HasPrefix(row.id, "godwit") {
			our.values, other.values = append(our.values, speed), append(other.values, 0)
		} else {
			our.values, other.values = append(our.values, 0), append(other.values, speed)
		}
	}
	chart := rows(fmt.Sprintf("Objects rewritten per second (%d objects, %d CPUs)", p.Objects, p.Environment.CPUs), "objects/s", names)
	return save(path, chart, our, other)
}

func drawCost(path string, p result.Peers) error {
	var names []string
	server, etcd := series{name: "kube-apiserver", fill: ours}, series{name: "etcd", fill: second}
	for _, row := range rowsOf(p) {
		names = append(names, row.text)
		server.values = append(server.values, p.Medians[row.id].APIServer)
		etcd.values = append(etcd.values, p.Medians[row.id].Etcd)
	}
	return save(path, rows("CPU time of the servers per object", "milliseconds", names), server, etcd)
}

func drawScale(path string, scales []result.Scale) error {
	var names []string
	memory := series{fill: ours}
	for _, s := range scales {
		names = append(names, fmt.Sprintf("%d objects", s.Objects))
		memory.values = append(memory.values, frame.MiB(max(s.KilledRSS, s.ResumeRSS)))
	}
	return save(path, rows("Peak memory of godwit crd run", "MiB", names), memory)
}

func save(path string, chart *plot.Plot, all ...series) error {
	sums := make([]float64, len(all[0].values))
	var below *plotter.BarChart
	for _, s := range all {
		bottomUp := slices.Clone(s.values)
		slices.Reverse(bottomUp)
		bars, err := plotter.NewBarChart(plotter.Values(bottomUp), vg.Points(barWidth))
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
		for i, value := range s.values {
			sums[i] += value
		}
	}
	most := slices.Max(sums)
	chart.Legend.Top, chart.X.Max = true, most*1.1
	if len(all) > 1 && all[0].name != "" {
		chart.X.Max = most * legendRoom
	}
	if err := chart.Save(width, vg.Length(len(sums))*rowHeight+2.5*vg.Centimeter, path); err != nil {
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
