// Package service is an external system for the example and its tests: volumes, whose ID the system makes, buckets, which
// have a name that is unique, and folders, which have a name that is unique in a bucket. It keeps them in memory.
//
//	POST   /KIND     201 {...}, 409 if it exists, 422 if the bucket of a folder does not
//	GET    /KIND     200 [{...}]
//	GET    /KIND/ID  200 {...}, 404, 422 if the bucket of a folder does not exist
//	PUT    /KIND/ID  200 {...}, 404, 422
//	DELETE /KIND/ID  204, 404, 422
package service

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Kinds of items, as they are in paths.
const (
	Volumes = "volumes"
	Buckets = "buckets"
	Folders = "folders"
)

// Item is a volume, a bucket or a folder.
type Item struct {
	ID     string `json:"id,omitempty"`
	Bucket string `json:"bucket,omitempty"`
	Name   string `json:"name,omitempty"`
	Title  string `json:"title"`
	Size   int    `json:"size"`
}

// Service is the external system. Its zero value has no items.
type Service struct {
	mu    sync.Mutex
	items map[string]map[string]Item
}

// FolderID is the ID of a folder.
func FolderID(bucket, name string) string { return bucket + ":" + name }

// Add creates an item, or returns false if it exists.
func (s *Service) Add(kind string, item Item) (Item, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch kind {
	case Volumes:
		item.ID = newGUID()
	case Buckets:
		item.ID = item.Name
	case Folders:
		item.ID = FolderID(item.Bucket, item.Name)
	}
	if _, exists := s.items[kind][item.ID]; exists {
		return Item{}, false
	}
	s.put(kind, item)
	return item, true
}

func newGUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // It never returns an error.
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (s *Service) put(kind string, item Item) {
	if s.items == nil {
		s.items = map[string]map[string]Item{}
	}
	if s.items[kind] == nil {
		s.items[kind] = map[string]Item{}
	}
	s.items[kind][item.ID] = item
}

// Get returns an item.
func (s *Service) Get(kind, id string) (Item, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	item, ok := s.items[kind][id]
	return item, ok
}

// Put changes an item, or returns false if it does not exist.
func (s *Service) Put(kind, id string, change func(*Item)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	item, ok := s.items[kind][id]
	if ok {
		change(&item)
		s.items[kind][id] = item
	}
	return ok
}

// Remove deletes an item, or returns false if it does not exist.
func (s *Service) Remove(kind, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.items[kind][id]
	delete(s.items[kind], id)
	return ok
}

// List returns the items in the order of their IDs.
func (s *Service) List(kind string) []Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []Item{}
	for _, item := range s.items[kind] {
		list = append(list, item)
	}
	slices.SortFunc(list, func(a, b Item) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// Handler serves the API.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{kind}", s.create)
	mux.HandleFunc("GET /{kind}", func(w http.ResponseWriter, r *http.Request) { answer(w, http.StatusOK, s.List(r.PathValue("kind"))) })
	mux.HandleFunc("GET /{kind}/{id}", s.withItem(func(w http.ResponseWriter, _ *http.Request, item Item) { answer(w, http.StatusOK, item) }))
	mux.HandleFunc("PUT /{kind}/{id}", s.withItem(s.update))
	mux.HandleFunc("DELETE /{kind}/{id}", s.withItem(func(w http.ResponseWriter, r *http.Request, item Item) {
		s.Remove(r.PathValue("kind"), item.ID)
		answer(w, http.StatusNoContent, nil)
	}))
	return mux
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if body != nil {
		_ = json.NewEncoder(w).Encode(body) // The client has gone.
	}
}

func (s *Service) create(w http.ResponseWriter, r *http.Request) {
	var item Item
	if err := json.NewDecoder(r.Body).Decode(&item); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	kind := r.PathValue("kind")
	if !s.hasParent(kind, item.Bucket) {
		http.Error(w, "no bucket "+item.Bucket, http.StatusUnprocessableEntity)
		return
	}
	created, ok := s.Add(kind, item)
	if !ok {
		http.Error(w, item.Name+" exists", http.StatusConflict)
		return
	}
	answer(w, http.StatusCreated, created)
}

func (s *Service) hasParent(kind, bucket string) bool {
	_, ok := s.Get(Buckets, bucket)
	return ok || kind != Folders
}

func (s *Service) withItem(handle func(http.ResponseWriter, *http.Request, Item)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		kind, id := r.PathValue("kind"), r.PathValue("id")
		bucket, _, _ := strings.Cut(id, ":")
		item, ok := s.Get(kind, id)
		switch {
		case !s.hasParent(kind, bucket):
			http.Error(w, "no bucket "+bucket, http.StatusUnprocessableEntity)
		case !ok:
			http.Error(w, "not found", http.StatusNotFound)
		default:
			handle(w, r, item)
		}
	}
}

func (s *Service) update(w http.ResponseWriter, r *http.Request, item Item) {
	var want Item
	if err := json.NewDecoder(r.Body).Decode(&want); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.Put(r.PathValue("kind"), item.ID, func(i *Item) { i.Title, i.Size = want.Title, want.Size })
	item.Title, item.Size = want.Title, want.Size
	answer(w, http.StatusOK, item)
}
