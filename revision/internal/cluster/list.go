package cluster

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pageObjects bounds the memory of a scan, which reads all its lists side by side and of each one
// page ahead. A VirtualMachine has some kilobytes.
const pageObjects = 200

// list is a page of objects of any kind. It keeps of each object what read returns: whole
// objects, decoded, take many times the memory of their JSON.
type list[T any] struct {
	metav1.ListMeta
	items []T
	read  func(map[string]any) T
}

// decode decodes item by item. encoding/json has a limit of depth: a list of an object that has
// just that depth exceeds the limit as a whole, and would hide all other objects.
func (l *list[T]) decode(body []byte) error {
	d := json.NewDecoder(bytes.NewReader(body))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		switch key {
		case "metadata":
			err = d.Decode(&l.ListMeta)
		case "items":
			err = l.decodeItems(d)
		default:
			err = d.Decode(new(json.RawMessage))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *list[T]) decodeItems(d *json.Decoder) error {
	if begin, err := d.Token(); err != nil || begin == nil { // null is an empty list
		return err
	}
	for d.More() {
		var item map[string]any
		if err := d.Decode(&item); err != nil {
			return err
		}
		l.items = append(l.items, l.read(item))
	}
	_, err := d.Token()
	return err
}
