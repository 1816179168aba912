package externalname_test

import (
	"bufio"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/godwit-dev/godwit/externalname/crossplane/conformance"
)

// Tags of LDAP's operations (RFC 4511, section 4.2 and following).
const (
	tagSearch, tagSearchDone = 0x63, 0x65
	tagModify, tagModified   = 0x66, 0x67
	tagAdd, tagAdded         = 0x68, 0x69
	tagDelete, tagDeleted    = 0x4a, 0x6b
	tagRename, tagRenamed    = 0x6c, 0x6d
)

// ldapOperations are what a request does to an entry, and the tag of its answer.
var ldapOperations = map[byte]struct {
	op     conformance.Operation
	answer byte
}{
	tagSearch: {conformance.Read, tagSearchDone},
	tagModify: {conformance.Update, tagModified},
	tagRename: {conformance.Update, tagRenamed},
	tagAdd:    {conformance.Create, tagAdded},
	tagDelete: {conformance.Delete, tagDeleted},
}

// Codes of results (RFC 4511, appendix A): what the server says when it is broken, when it refuses, and when another client
// is in the way.
const (
	operationsError    = 1
	unwillingToPerform = 53
	busy               = 51
)

// ldapWire stands between a provider and a directory server, so that a check sees each request and can interfere.
type ldapWire struct {
	listener net.Listener
	server   string
	// operation is what a request does to the resources of a check.
	operation func(message) (op conformance.Operation, known bool)
	onCall    atomic.Pointer[func(conformance.Operation) conformance.Fault]
}

func newLDAPWire(t *testing.T, server string, operation func(message) (conformance.Operation, bool)) (*ldapWire, error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &ldapWire{listener: listener, server: server, operation: operation}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _ = w.serve(client) }() // The provider sees that the connection has ended.
		}
	}()
	return w, nil
}

func (w *ldapWire) url() string { return "ldap://" + w.listener.Addr().String() }

func (w *ldapWire) OnCall(f func(conformance.Operation) conformance.Fault) { w.onCall.Store(&f) }

// serve passes messages on until an end closes the connection, or a fault does.
func (w *ldapWire) serve(client net.Conn) error {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", w.server)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	var mu sync.Mutex
	pending := map[string]conformance.Fault{} // by the message's ID, which its answer has as well
	go func() {
		defer func() { _, _ = client.Close(), server.Close() }()
		from := bufio.NewReader(server)
		for {
			m, err := readLDAP(from)
			if err != nil {
				return
			}
			mu.Lock()
			fault, faulty := pending[m.id]
			mu.Unlock()
			if faulty && m.tag != 0x64 && m.tag != 0x73 { // An entry or a reference is followed by the end of the search.
				if fault.After != nil {
					fault.After()
				}
				if fault.Answer == conformance.Lost {
					return
				}
			}
			if _, err := client.Write(m.bytes); err != nil {
				return
			}
		}
	}()
	from := bufio.NewReader(client)
	for {
		m, err := readLDAP(from)
		if err != nil {
			return err
		}
		fault := w.fault(m)
		if fault.Before != nil {
			fault.Before()
		}
		switch fault.Answer {
		case conformance.Dropped:
			return nil
		case conformance.Refused, conformance.Conflict, conformance.ServerError:
			code := byte(unwillingToPerform)
			switch fault.Answer {
			case conformance.Conflict:
				code = busy
			case conformance.ServerError:
				code = operationsError
			}
			_, err = client.Write(result(m.id, ldapOperations[m.tag].answer, code))
		default:
			mu.Lock()
			pending[m.id] = fault
			mu.Unlock()
			_, err = server.Write(m.bytes)
		}
		if err != nil {
			return err
		}
	}
}

func (w *ldapWire) fault(m message) conformance.Fault {
	op, known := w.operation(m)
	f := w.onCall.Load()
	if !known || f == nil {
		return conformance.Fault{}
	}
	return (*f)(op)
}

// entryOperation is what a request does to an entry.
func entryOperation(m message) (conformance.Operation, bool) {
	known, ok := ldapOperations[m.tag]
	return known.op, ok
}

// memberOperation is what a request does to a member of a group, each of which is a value of an attribute.
func memberOperation(m message) (conformance.Operation, bool) {
	if m.tag != tagModify {
		return conformance.Read, m.tag == tagSearch
	}
	var request struct {
		Entry   []byte
		Changes []struct {
			Kind      asn1.Enumerated // 0 adds values, 1 deletes values
			Attribute struct {
				Name   []byte
				Values []asn1.RawValue `asn1:"set"`
			}
		}
	}
	if _, err := asn1.UnmarshalWithParams(m.operation, &request, "application,tag:6"); err != nil {
		return "", false
	}
	done := map[asn1.Enumerated]bool{}
	for _, change := range request.Changes {
		if string(change.Attribute.Name) == "member" {
			done[change.Kind] = true
		}
	}
	switch {
	case done[0] && done[1]:
		return conformance.Update, true
	case done[0]:
		return conformance.Create, true
	case done[1]:
		return conformance.Delete, true
	}
	return "", false
}

// message is one of LDAP: a sequence of an ID and an operation.
type message struct {
	id        string
	tag       byte
	operation []byte // begins with the tag
	bytes     []byte
}

func readLDAP(from *bufio.Reader) (message, error) {
	header, length, err := readHeader(from)
	if err != nil {
		return message{}, err
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(from, body); err != nil {
		return message{}, err
	}
	if len(body) < 3 || body[0] != 0x02 || len(body) < 3+int(body[1]) {
		return message{}, errors.New("not a message of LDAP")
	}
	end := 2 + int(body[1])
	return message{id: string(body[2:end]), tag: body[end], operation: body[end:], bytes: append(header, body...)}, nil
}

// readHeader reads a tag and a length in the definite form.
func readHeader(from *bufio.Reader) (header []byte, length int, err error) {
	header = make([]byte, 2)
	if _, err := io.ReadFull(from, header); err != nil {
		return nil, 0, err
	}
	if header[1] < 0x80 {
		return header, int(header[1]), nil
	}
	size := int(header[1] & 0x7f)
	if size == 0 || size > 4 {
		return nil, 0, fmt.Errorf("a length of %d bytes", size)
	}
	long := make([]byte, size)
	if _, err := io.ReadFull(from, long); err != nil {
		return nil, 0, err
	}
	padded := make([]byte, 4)
	copy(padded[4-size:], long)
	return slices.Concat(header, long), int(binary.BigEndian.Uint32(padded)), nil
}

// result is an answer with a code and a short text.
func result(id string, tag, code byte) []byte {
	const text = "by the conformance checks"
	inner := append([]byte{0x0a, 1, code, 0x04, 0, 0x04, byte(len(text))}, text...)
	operation := append([]byte{tag, byte(len(inner))}, inner...)
	body := append(append([]byte{0x02, byte(len(id))}, id...), operation...)
	return append([]byte{0x30, byte(len(body))}, body...)
}
