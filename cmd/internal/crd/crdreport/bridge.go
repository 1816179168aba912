package crdreport

import (
	"io"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/crdmigrator/bridge"
)

// Bridge says how a cluster gets from one live CRD to that of the next release.
type Bridge struct {
	Name   string        `json:"name"`
	Result bridge.Result `json:"result"`
	// Target is the version at which the steps store the objects; empty without steps.
	Target          string          `json:"target"`
	RemovedVersions []string        `json:"removedVersions"`
	Steps           []bridge.Kind   `json:"steps"`
	Findings        []BridgeFinding `json:"findings"`
}

// BridgeFinding is a [bridge.Finding] with its fix in words.
type BridgeFinding struct {
	Blocks bool `json:"blocks"`
	render.Problem
}

// NewBridge words a bridge.
func NewBridge(b bridge.Bridge, w remedy.Writer) Bridge {
	item := Bridge{Name: b.CRD, Result: b.Result, Target: b.Target, RemovedVersions: b.RemovedVersions}
	for _, s := range b.Steps {
		item.Steps = append(item.Steps, s.Kind)
	}
	for _, f := range b.Findings {
		item.Findings = append(item.Findings, BridgeFinding{f.Severity == godwit.Blocks, render.NewProblem(f, w)})
	}
	return item
}

// ResourceName implements [render.Item].
func (b Bridge) ResourceName() string { return resourceName(b.Name) }

// BridgeList makes the list that `crd bridge` prints.
func BridgeList(items []Bridge) render.List[Bridge] {
	for i := range items {
		b := &items[i]
		b.RemovedVersions, b.Steps, b.Findings = render.Present(b.RemovedVersions), render.Present(b.Steps), render.Present(b.Findings)
	}
	return render.NewList("CRDBridgeList", items)
}

var bridgeResults = map[bridge.Result]render.Cell{
	bridge.NotNeeded: {Text: "✓ NotNeeded", Tone: render.Good}, bridge.Ready: {Text: "● Ready", Tone: render.Attention},
	bridge.Blocked: {Text: "✗ Blocked", Tone: render.Bad},
}

var bridgeTable = render.Table[Bridge]{
	{Name: "Name", Cell: func(b Bridge) render.Cell { return render.TextCell(b.Name) }},
	{Name: "Result", Cell: func(b Bridge) render.Cell { return bridgeResults[b.Result] }},
	{Name: "Target", Cell: func(b Bridge) render.Cell { return render.TextCell(b.Target) }},
	{Name: "Removed", Cell: func(b Bridge) render.Cell { return render.WordsCell(b.RemovedVersions) }},
	{Name: "Steps", Cell: func(b Bridge) render.Cell { return render.WordsCell(b.Steps) }},
}

// WriteBridges writes a table of the steps, and the findings below it.
func WriteBridges(w io.Writer, s render.Style, items []Bridge) error {
	var text strings.Builder
	text.WriteString(bridgeTable.Text(s, items))
	for _, b := range items {
		var lines strings.Builder
		for _, f := range slices.Concat(findingsThat(b, true), findingsThat(b, false)) {
			mark := render.MarkNote
			if f.Blocks {
				mark = render.MarkBad
			}
			lines.WriteString(f.Lines(s, mark))
		}
		text.WriteString(render.Below(b.Name, lines.String()))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func findingsThat(b Bridge, block bool) []BridgeFinding {
	return slices.DeleteFunc(slices.Clone(b.Findings), func(f BridgeFinding) bool { return f.Blocks != block })
}
