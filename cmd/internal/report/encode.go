package report

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// Encode writes a value as JSON, indented as kubectl does.
func Encode(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "    ")
	e.SetEscapeHTML(false) // remedies are commands, to be copied
	return e.Encode(value)
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
