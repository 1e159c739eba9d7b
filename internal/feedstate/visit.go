package feedstate

import (
	"context"
	"time"

	"github.com/lektordir/lektor/internal/httpmsg"
)

// Getter makes an exchange, as a fetch.Client does.
type Getter interface {
	Get(ctx context.Context, r *httpmsg.Request) (*httpmsg.Response, error)
}

// Visit is one exchange with the server of a feed, or of another document that has a [State]. Its
// steps, in order:
//
//   - [Visit.Ask] makes a request;
//   - [Visit.Known] reports whether the document is known, and records that;
//   - if not, the caller parses the document, stores its entries, and calls [Visit.Read];
//   - [Visit.Save] saves the state.
//
// Two things end a visit earlier. If no readable document came, the caller calls [Visit.Fail], and
// the source is requested less often. If the document could not be stored, the caller just drops
// the visit: nothing is saved, above all no validators, so the document is sent again once this
// machine can store it. The same holds if the context ends: the feed stays due.
//
// A Visit is not safe for concurrent use.
type Visit struct {
	*State
	Client Getter
	Now    func() time.Time
	// DryRun saves nothing.
	DryRun bool
	// Moved, if not nil, is called by Save with a new URL ([State.MovedTo]), before the URL is
	// saved.
	Moved func(url string) error

	resp *httpmsg.Response
}

// Ask makes the request. Pass an error to Fail.
func (v *Visit) Ask(ctx context.Context, r *httpmsg.Request) (*httpmsg.Response, error) {
	resp, err := v.Client.Get(ctx, r)
	v.resp = resp
	return resp, err
}

// Answered replaces Ask for a response that the caller has already.
func (v *Visit) Answered(resp *httpmsg.Response) { v.resp = resp }

// Known reports whether the response brings nothing new, and records that.
func (v *Visit) Known() bool {
	switch {
	case v.resp.NotModified:
		v.NotModified(v.Now(), v.resp)
	case v.SameBody(v.resp):
		v.Unchanged(v.Now(), v.resp)
	default:
		return false
	}
	return true
}

// Read records that the document was parsed and its entries stored, with its hints about the next
// fetch.
func (v *Visit) Read(hints Hints) { v.Succeeded(v.Now(), v.resp, hints) }

// Save saves the state, unless DryRun is set.
func (v *Visit) Save() error {
	if v.DryRun {
		return nil
	}
	if to := v.MovedTo(); to != "" && v.Moved != nil {
		if err := v.Moved(to); err != nil {
			return err
		}
	}
	return v.State.Save()
}

// Fail records the error of a request without a readable document, and saves the state, unless ctx
// has ended or DryRun is set. It returns the error of saving.
func (v *Visit) Fail(ctx context.Context, err error) error {
	if ctx.Err() != nil || v.DryRun {
		return nil
	}
	v.Failed(v.Now(), err)
	return v.State.Save()
}
