// Package writes reads from the audit log of an API server which clients have written the objects of a group, and how often, also where
// a write has changed nothing: etcd has no trace of such a write.
package writes

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// CRDs, whose status a client writes that trims storedVersions.
const (
	crdGroup    = "apiextensions.k8s.io"
	crdResource = "customresourcedefinitions"
)

// apiServer is the program that writes conditions of CRDs.
const apiServer = "kube-apiserver"

// Policy returns the audit policy by which a log has the writes of objects of these groups, and those of the status of CRDs.
func Policy(resource string, groups ...string) ([]byte, error) {
	resources := []map[string]any{{"group": crdGroup, "resources": []string{crdResource + "/status"}}}
	for _, group := range groups {
		resources = append(resources, map[string]any{"group": group, "resources": []string{resource}})
	}
	return yaml.Marshal(map[string]any{
		"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": []string{"RequestReceived"},
		"rules": []any{
			map[string]any{"level": "RequestResponse", "verbs": []string{"create", "update", "patch"}, "resources": resources},
			map[string]any{"level": "None"},
		},
	})
}

// event is a request in the log.
type event struct {
	Verb       string
	UserAgent  string
	RequestURI string
	ObjectRef  struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	}
	ResponseStatus struct{ Code int }
	ResponseObject struct {
		Metadata struct{ Name, ResourceVersion string }
		Status   json.RawMessage
	}
}

// program is that of a client, by its user agent.
func (e event) program() string {
	name, _, _ := strings.Cut(e.UserAgent, "/")
	return name
}

// stored returns whether the API server has accepted a request that was no dry run.
func (e event) stored() bool {
	uri, err := url.Parse(e.RequestURI)
	return err == nil && !uri.Query().Has("dryRun") && e.ResponseStatus.Code >= 200 && e.ResponseStatus.Code < 300
}

// Log has the writes of one resource.
type Log struct {
	// Changed has how many changes of objects each program has made.
	Changed map[string]int
	// Equal has how many writes of each program have changed nothing.
	Equal map[string]int
	// Trims are the programs whose writes have left one of the CRD's storedVersions. The first one has trimmed, and the write of another changed
	// nothing.
	Trims []string
	// Repeated names what a program has written more than once, and objects that have changed more than once since their creation.
	Repeated []string
}

// object is what the log has of one object.
type object struct {
	versions []string // resourceVersions, in the order of the log
	writes   map[string]int
	changes  int
}

// Read reads a log. A write that returns a resourceVersion which the log has before has changed nothing.
func Read(log io.Reader, group, resource string) (Log, error) {
	l := Log{Changed: map[string]int{}, Equal: map[string]int{}}
	objects := map[string]*object{}
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return l, nil // the API server is still writing what comes after the last end of a line
		}
		if err != nil {
			return l, err
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return l, fmt.Errorf("read the audit log: %w in %s", err, line)
		}
		if !e.stored() {
			continue
		}
		switch r := e.ObjectRef; {
		case r.APIGroup == group && r.Resource == resource && r.Subresource == "":
			l.add(objects, e)
		case r.APIGroup == crdGroup && r.Resource == crdResource && r.Name == resource+"."+group && e.program() != apiServer:
			if err := l.addTrim(e); err != nil {
				return l, err
			}
		}
	}
}

// addTrim adds a write of the status of the CRD.
func (l *Log) addTrim(e event) error {
	var status struct{ StoredVersions []string }
	if err := json.Unmarshal(e.ResponseObject.Status, &status); err != nil {
		return fmt.Errorf("read the status of CRD %s in the audit log: %w", e.ObjectRef.Name, err)
	}
	if len(status.StoredVersions) == 1 && !slices.Contains(l.Trims, e.program()) {
		l.Trims = append(l.Trims, e.program())
	}
	return nil
}

func (l *Log) add(objects map[string]*object, e event) {
	name := e.ObjectRef.Namespace + "/" + e.ResponseObject.Metadata.Name
	version := e.ResponseObject.Metadata.ResourceVersion
	if e.Verb == "create" {
		objects[name] = &object{versions: []string{version}, writes: map[string]int{}}
		return
	}
	o := objects[name]
	if o == nil { // the log begins later
		o = &object{writes: map[string]int{}}
		objects[name] = o
	}
	program := e.program()
	if o.writes[program]++; o.writes[program] == 2 {
		l.Repeated = append(l.Repeated, fmt.Sprintf("%s has written %s again", program, name))
	}
	if slices.Contains(o.versions, version) {
		l.Equal[program]++
		return
	}
	o.versions = append(o.versions, version)
	l.Changed[program]++
	if o.changes++; o.changes == 2 {
		l.Repeated = append(l.Repeated, name+" has changed again, by "+program)
	}
}
