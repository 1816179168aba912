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

// Names writes one resource name per line, as kubectl writes and reads it.
func Names[T Item](w io.Writer, items []T) error {
	for _, item := range items {
		if _, err := fmt.Fprintln(w, "customresourcedefinition.apiextensions.k8s.io/"+item.name()); err != nil {
			return err
		}
	}
	return nil
}
