package jobservice

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// Database is a database of the service.
type Database struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
	Size int    `json:"size"`
	// Token identifies the client that created the database.
	Token string `json:"token,omitempty"`
	// State is Ready or Deleting.
	State string `json:"state,omitempty"`
}

// States of a [Database] and of an [Operation].
const (
	Ready     = "Ready"
	Deleting  = "Deleting"
	Running   = "Running"
	Succeeded = "Succeeded"
	Failed    = "Failed"
)

// Operation creates a database.
type Operation struct {
	ID       string `json:"id"`
	State    string `json:"state"`
	Database string `json:"database,omitempty"`
	Message  string `json:"message,omitempty"`

	wanted Database
}

// Control says how the service behaves.
type Control struct {
	// Hold keeps operations running and databases Deleting. Otherwise both end at the next request.
	Hold bool `json:"hold,omitempty"`
	// Fail makes operations fail with the message.
	Fail string `json:"fail,omitempty"`
	// Faults make requests fail. Each has its own number of requests.
	Faults []Fault `json:"faults,omitempty"`
}

// pageSize is small, so that every test has several pages.
const pageSize = 3

// service is the state. Its methods run one at a time.
type service struct {
	mu         sync.Mutex
	control    Control
	made       int
	databases  map[string]*Database
	operations map[string]*Operation
	requests   map[string]int
	// running and deleting have what has not ended, so that a request takes as long with many databases as with few.
	running  []*Operation
	deleting []string
}

// New returns the handler of a service without databases.
func New() http.Handler {
	s := &service{databases: map[string]*Database{}, operations: map[string]*Operation{}, requests: map[string]int{}}
	mux := http.NewServeMux()
	for pattern, handle := range map[string]func(*http.Request) (int, any){
		"POST /databases":        s.create,
		"GET /databases":         s.list,
		"GET /databases/{id}":    s.read,
		"PUT /databases/{id}":    s.update,
		"DELETE /databases/{id}": s.remove,
		"GET /operations/{id}":   s.operation,
		"GET /operations":        s.findOperation,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, pattern, handle) })
	}
	mux.HandleFunc("PUT /control", s.setControl)
	mux.HandleFunc("GET /requests", s.counts)
	return mux
}

// serve counts the request and handles it, unless a fault makes the request or its answer fail.
func (s *service) serve(w http.ResponseWriter, r *http.Request, pattern string, handle func(*http.Request) (int, any)) {
	s.mu.Lock()
	s.requests[pattern]++
	fault := s.takeFault(pattern)
	if fault.before() {
		s.mu.Unlock()
		fault.answer(w, r)
		return
	}
	s.endPending()
	code, body := handle(r)
	data, err := json.Marshal(body)
	s.mu.Unlock()
	if err != nil {
		code, data = http.StatusInternalServerError, []byte(err.Error())
	}
	if fault.Kind != "" {
		fault.answer(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(data)
}

// endPending ends running operations and pending deletions, unless Control.Hold keeps them.
func (s *service) endPending() {
	if s.control.Hold {
		return
	}
	for _, o := range s.running {
		if s.control.Fail != "" {
			o.State, o.Message = Failed, s.control.Fail
			continue
		}
		o.State, o.Database = Succeeded, s.add(o.wanted)
	}
	for _, id := range s.deleting {
		delete(s.databases, id)
	}
	s.running, s.deleting = nil, nil
}

func (s *service) add(d Database) string {
	s.made++
	d.ID, d.State = fmt.Sprintf("da7aba5e-0000-4000-8000-%012x", s.made), Ready // in order, and with letters
	s.databases[d.ID] = &d
	return d.ID
}

func problem(code int, text string) (int, any) { return code, map[string]string{"error": text} }

func (s *service) create(r *http.Request) (int, any) {
	var wanted Database
	if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil || wanted.Name == "" {
		return problem(http.StatusBadRequest, "a database has a name")
	}
	for _, d := range s.databases {
		if d.Name == wanted.Name {
			return problem(http.StatusConflict, "there is a database "+wanted.Name)
		}
	}
	s.made++
	o := &Operation{ID: fmt.Sprintf("op-%d", s.made), State: Running, wanted: wanted}
	s.operations[o.ID] = o
	s.running = append(s.running, o)
	return http.StatusAccepted, map[string]string{"operation": o.ID}
}

func (s *service) list(r *http.Request) (int, any) {
	page := []Database{}
	for _, d := range s.databases {
		if d.ID > r.URL.Query().Get("after") {
			page = append(page, *d)
		}
	}
	slices.SortFunc(page, func(a, b Database) int { return cmp.Compare(a.ID, b.ID) })
	return http.StatusOK, page[:min(pageSize, len(page))]
}

func (s *service) read(r *http.Request) (int, any) {
	d, ok := s.databases[r.PathValue("id")]
	if !ok {
		return problem(http.StatusNotFound, "no such database")
	}
	return http.StatusOK, *d
}

func (s *service) update(r *http.Request) (int, any) {
	d, ok := s.databases[r.PathValue("id")]
	switch {
	case !ok:
		return problem(http.StatusNotFound, "no such database")
	case d.State == Deleting:
		return problem(http.StatusConflict, "the database is being deleted")
	}
	var wanted Database
	if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil {
		return problem(http.StatusBadRequest, err.Error())
	}
	d.Name, d.Size = wanted.Name, wanted.Size
	return http.StatusOK, *d
}

func (s *service) remove(r *http.Request) (int, any) {
	d, ok := s.databases[r.PathValue("id")]
	switch {
	case !ok:
		return problem(http.StatusNotFound, "no such database")
	case d.State == Deleting:
		return problem(http.StatusConflict, "the database is being deleted")
	}
	d.State = Deleting
	s.deleting = append(s.deleting, d.ID)
	return http.StatusAccepted, struct{}{}
}

func (s *service) operation(r *http.Request) (int, any) {
	o, ok := s.operations[r.PathValue("id")]
	if !ok {
		return problem(http.StatusNotFound, "no such operation")
	}
	return http.StatusOK, *o
}

func (s *service) findOperation(r *http.Request) (int, any) {
	token := r.URL.Query().Get("token")
	for _, o := range s.operations {
		if token != "" && o.wanted.Token == token {
			return http.StatusOK, *o
		}
	}
	return problem(http.StatusNotFound, "no such operation")
}

func (s *service) setControl(w http.ResponseWriter, r *http.Request) {
	var control Control
	if err := json.NewDecoder(r.Body).Decode(&control); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.control = control
}

func (s *service) counts(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = json.NewEncoder(w).Encode(s.requests)
}
