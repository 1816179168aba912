package render

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// indent is kubectl's indentation.
const indent = "    "

// Encoder is a document that writes itself as JSON.
type Encoder interface {
	EncodeJSON(w io.Writer) error
}

// Encode writes a document as JSON, indented as kubectl does.
func Encode(w io.Writer, document any) error {
	if e, is := document.(Encoder); is {
		return e.EncodeJSON(w)
	}
	return encode(w, "", document)
}

func encode(w io.Writer, prefix string, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent(prefix, indent)
	e.SetEscapeHTML(false) // remedies are commands, to be copied
	return e.Encode(value)
}

// EncodeItems writes the JSON of a document and inserts its items one by one. Encoding the whole document would need
// twice more memory for the items.
func EncodeItems[T any](w io.Writer, document any, items iter.Seq[T]) error {
	const noItems, prefix = `"items": []`, indent + indent
	var around bytes.Buffer
	if err := encode(&around, "", document); err != nil {
		return err
	}
	before, after, _ := strings.Cut(around.String(), noItems)
	out := bufio.NewWriter(w)
	_, _ = out.WriteString(before + strings.TrimSuffix(noItems, "]")) // Flush returns the first error
	separator, end := "", "]"
	for item := range items {
		var one bytes.Buffer
		if err := encode(&one, prefix, item); err != nil {
			return err
		}
		_, _ = out.WriteString(separator + "\n" + prefix)
		_, _ = out.Write(bytes.TrimRight(one.Bytes(), "\n"))
		separator, end = ",", "\n"+indent+"]"
	}
	_, _ = out.WriteString(end + after)
	return out.Flush()
}

// EncodeJSON implements [Encoder].
func (l List[T]) EncodeJSON(w io.Writer) error {
	items := l.Items
	l.Items = []T{}
	type envelope List[T] // without EncodeJSON
	return EncodeItems(w, envelope(l), slices.Values(items))
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
