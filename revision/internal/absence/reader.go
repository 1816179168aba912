package absence

import (
	"context"
	"errors"
	"fmt"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/revision/internal/refindex"
	"github.com/godwit-dev/godwit/walk"
)

// MaxNames bounds the revisions that one scan reads again: two to three requests each, which at
// fifty requests per second take less than a minute.
const MaxNames = 1000

// Reader reads revisions again for one scan, several at once.
type Reader struct {
	access  Access
	limiter *walk.Limiter
	left    int // revisions that may be read
}

// NewReader is for one scan.
func NewReader(a Access, limiter *walk.Limiter) *Reader {
	return &Reader{access: a, limiter: limiter, left: MaxNames}
}

// Read reads revisions of one namespace again, in the order of their names, and returns as many
// answers.
func (r *Reader) Read(ctx context.Context, x *refindex.Index, names []string) ([]Absence, error) {
	all := make([]Absence, len(names))
	if len(names) == 0 {
		return all, nil
	}
	whole, err := r.namespace(ctx, x.Namespace)
	if err != nil {
		return nil, err
	}
	if whole.Terminating != "" {
		for i := range all {
			all[i] = whole
		}
		return all, nil
	}
	now := names[:min(len(names), r.left)]
	r.left -= len(now)
	for i := len(now); i < len(names); i++ {
		all[i].Unread = fmt.Sprintf("a scan reads %d missing revisions again, and has done so", MaxNames)
	}
	return all, r.readEach(ctx, x, now, all)
}

func (r *Reader) namespace(ctx context.Context, name string) (a Absence, err error) {
	err = walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error {
		a, err = terminating(ctx, r.access.Client, name)
		return err
	})
	return a, err
}

// job is one revision to read.
type job struct {
	namespace, name string
	absence         *Absence
	err             error
}

// GetNamespace and GetName make a job an object that a walk visits.
func (j *job) GetNamespace() string { return j.namespace }

// GetName is the revision's name.
func (j *job) GetName() string { return j.name }

// errNotRead is the error of a job that the walk did not come to.
var errNotRead = errors.New("it was not read")

// readEach fills in the first answers, one for each name. It returns the first error.
func (r *Reader) readEach(ctx context.Context, x *refindex.Index, names []string, into []Absence) error {
	jobs := make([]*job, len(names))
	for i, name := range names {
		jobs[i] = &job{namespace: x.Namespace, name: name, absence: &into[i], err: errNotRead}
	}
	page := func(yield func(walk.Page[*job], error) bool) { yield(walk.Page[*job]{Items: jobs}, nil) }
	one := lookup{Access: r.access, index: x}
	_, err := walk.Run(ctx, page, func(ctx context.Context, j *job) (godwit.Outcome, error) {
		if *j.absence, j.err = one.read(ctx, j.name); j.err != nil {
			return godwit.Failed, j.err
		}
		return godwit.Migrated, nil
	}, walk.Options{Limiter: r.limiter})
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if j.err != nil {
			return fmt.Errorf("read controllerrevision %s/%s again: %w", j.namespace, j.name, j.err)
		}
	}
	return nil
}
