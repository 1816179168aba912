package conformance

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
)

// Proxy is a proxy between a provider and an external system with an HTTP API: a check sees each call and can inject
// faults. Use its OnCall in a [System].
type Proxy struct {
	// Target is the external system.
	Target *url.URL
	// Transport sends the requests to it; nil means http.DefaultTransport.
	Transport http.RoundTripper
	// Operation returns the operation of a request; if empty, the request is neither counted nor disturbed.
	Operation func(*http.Request) Operation
	// WriteRefused, WriteConflict and WriteServerError write the error responses of the external system. Nil writes status
	// 403, 409 or 500 and a line of text.
	WriteRefused, WriteConflict, WriteServerError func(http.ResponseWriter, *http.Request)

	onCall atomic.Pointer[func(Operation) Fault]
}

// OnCall implements the function of [System].
func (p *Proxy) OnCall(f func(Operation) Fault) { p.onCall.Store(&f) }

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	fault := p.fault(req)
	if fault.Before != nil {
		fault.Before()
	}
	switch fault.Answer {
	case Refused:
		p.answer(w, req, p.WriteRefused, http.StatusForbidden)
	case Conflict:
		p.answer(w, req, p.WriteConflict, http.StatusConflict)
	case ServerError:
		p.answer(w, req, p.WriteServerError, http.StatusInternalServerError)
	case Dropped:
		drop()
	case answered, Lost:
		p.forward(w, req, fault)
	}
}

func (p *Proxy) fault(req *http.Request) Fault {
	op := p.Operation(req)
	f := p.onCall.Load()
	if op == "" || f == nil {
		return Fault{}
	}
	return (*f)(op)
}

// forward sends the call. The answer waits for After, so that a provider that After kills never gets it.
func (p *Proxy) forward(w http.ResponseWriter, req *http.Request, fault Fault) {
	proxy := &httputil.ReverseProxy{
		Transport: p.Transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(p.Target) },
		ModifyResponse: func(*http.Response) error {
			if fault.After != nil {
				fault.After()
			}
			if fault.Answer == Lost {
				drop()
			}
			return nil
		},
		FlushInterval: -1, // Watches are streams.
	}
	proxy.ServeHTTP(w, req)
}

// drop ends the connection without an answer, as net/http documents.
func drop() { panic(http.ErrAbortHandler) }

func (p *Proxy) answer(w http.ResponseWriter, req *http.Request, write func(http.ResponseWriter, *http.Request), status int) {
	if write == nil {
		http.Error(w, fmt.Sprintf("%s by the conformance checks", http.StatusText(status)), status)
		return
	}
	write(w, req)
}
