package cluster

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// list is a page of objects of any kind.
type list struct {
	metav1.ListMeta
	items []map[string]any
}

// decode reads item by item: an object that is nested as deep as JSON is read at all would
// make a list of it, two levels deeper, unreadable as a whole, and so hide all others.
func (l *list) decode(body []byte) error {
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

func (l *list) decodeItems(d *json.Decoder) error {
	if begin, err := d.Token(); err != nil || begin == nil { // null is an empty list
		return err
	}
	for d.More() {
		var item map[string]any
		if err := d.Decode(&item); err != nil {
			return err
		}
		l.items = append(l.items, item)
	}
	_, err := d.Token()
	return err
}
