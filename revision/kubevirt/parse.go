package kubevirt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxBytes of data. etcd takes requests of 1.5 MiB, and a version may need more
	// room than the one before; instance types have some hundred bytes.
	maxBytes = 512 << 10
	// maxDepth of objects and lists within each other. KubeVirt's have 8.
	maxDepth = 64
)

// parse reads JSON that any client may have written. It is stricter than encoding/json
// where two readers could see two things: a key that occurs twice, text that is not
// UTF-8. Numbers are int64, or a json.Number where that would not be the same text:
// what is carried through must arrive as it was.
func parse(data []byte) (any, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("it has %d bytes, more than the %d that an instance type or preference may have", len(data), maxBytes)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8")
	}
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return parseValue(decoder, "", 0)
}

func parseValue(decoder *json.Decoder, path string, depth int) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, fmt.Errorf("it is not JSON at %s: %w", shown(path), err)
	}
	switch token := token.(type) {
	case json.Number:
		return number(token), nil
	case json.Delim:
		if depth == maxDepth {
			return nil, fmt.Errorf("%s is more than %d levels deep", shown(path), maxDepth)
		}
		if token == '[' {
			return parseList(decoder, path, depth+1)
		}
		return parseObject(decoder, path, depth+1)
	default:
		return token, nil
	}
}

func parseObject(decoder *json.Decoder, path string, depth int) (any, error) {
	object := map[string]any{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, fmt.Errorf("it is not JSON at %s: %w", shown(path), err)
		}
		key, _ := token.(string)
		at := fieldPath(path, key)
		if _, twice := object[key]; twice {
			return nil, fmt.Errorf("%s occurs twice", shown(at))
		}
		if object[key], err = parseValue(decoder, at, depth); err != nil {
			return nil, err
		}
	}
	_, err := decoder.Token()
	return object, err
}

func parseList(decoder *json.Decoder, path string, depth int) (any, error) {
	list := []any{}
	for decoder.More() {
		value, err := parseValue(decoder, elementPath(path, len(list)), depth)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	_, err := decoder.Token()
	return list, err
}

func number(n json.Number) any {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil && strconv.FormatInt(i, 10) == n.String() {
		return i
	}
	return n
}

// fieldPath says where in an object, as kubectl does: spec.gpus[0].name.
func fieldPath(path, key string) string {
	// A path is for people. A key of half a megabyte would be in it once for each of
	// the values below.
	const most = 100
	if len(key) > most {
		key = strings.ToValidUTF8(key[:most], "") + "…"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func elementPath(path string, index int) string {
	return path + "[" + strconv.Itoa(index) + "]"
}

// shown is a path within a sentence.
func shown(path string) string {
	if path == "" {
		return "the whole"
	}
	return strconv.Quote(path)
}
