package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// indent is kubectl's.
const indent = "    "

// Encode writes a value as JSON, indented as kubectl does.
func Encode(w io.Writer, value any) error {
	if r, is := value.(RevisionRunReport); is && len(r.Items) > 0 {
		return r.encode(w)
	}
	return encode(w, "", value)
}

func encode(w io.Writer, prefix string, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent(prefix, indent)
	e.SetEscapeHTML(false) // remedies are commands, to be copied
	return e.Encode(value)
}

// encode writes the report item by item: as a whole it would be in memory twice more.
func (r RevisionRunReport) encode(w io.Writer) error {
	const noItems, prefix = `"items": []`, indent + indent
	items := r.Items
	r.Items = []*RevisionRun{}
	var around bytes.Buffer
	if err := encode(&around, "", r); err != nil {
		return err
	}
	before, after, _ := strings.Cut(around.String(), noItems)
	out := bufio.NewWriter(w)
	_, _ = out.WriteString(before + strings.TrimSuffix(noItems, "]")) // Flush returns the first error
	for i, item := range items {
		var one bytes.Buffer
		if err := encode(&one, prefix, item); err != nil {
			return err
		}
		separator := ","
		if i == 0 {
			separator = ""
		}
		_, _ = out.WriteString(separator + "\n" + prefix)
		_, _ = out.Write(bytes.TrimRight(one.Bytes(), "\n"))
	}
	_, _ = out.WriteString("\n" + indent + "]" + after)
	return out.Flush()
}

// EncodeYAML writes a value as YAML.
func EncodeYAML(w io.Writer, value any) error {
	text, err := yaml.Marshal(value)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// Names writes one resource name per line.
func Names(w io.Writer, names []string) error {
	for _, name := range names {
		if _, err := fmt.Fprintln(w, name); err != nil {
			return err
		}
	}
	return nil
}

// NamesOf are the names of definitions, as kubectl writes and reads them.
func NamesOf[T Item](items []T) []string {
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = "customresourcedefinition.apiextensions.k8s.io/" + item.name()
	}
	return names
}
