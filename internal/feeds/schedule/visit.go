package schedule

import (
	"context"
	"time"

	"github.com/lektordir/lektor/internal/http/httpmsg"
)

// Client makes an exchange, as a fetch.Client does.
type Client interface {
	Get(ctx context.Context, r *httpmsg.Request) (*httpmsg.Response, error)
}

// Visit is one exchange with the server of a feed, or of another document that has a [State]. Its steps are,
// in this order:
//
//   - [Visit.Ask] makes a request;
//   - [Visit.Known] reports whether the document is known, and records that;
//   - if not, the caller parses the document, stores its entries, and calls [Visit.Read];
//   - [Visit.Save] saves the state.
//
// A visit can end earlier for two reasons. If the server sends no readable document, the caller calls
// [Visit.Fail], and the feed is requested less often. If the document cannot be stored, or the context is
// done, the caller does not call Save: no validators are saved, so the server sends the document again, and
// the feed stays due.
//
// A Visit is not safe for concurrent use.
type Visit struct {
	State  *State
	Client Client
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

// Answered sets the response instead of Ask, if the caller has it already.
func (v *Visit) Answered(resp *httpmsg.Response) { v.resp = resp }

// Known reports whether the document has not changed, and records the response if so.
func (v *Visit) Known() bool {
	switch {
	case v.resp.NotModified:
		v.State.NotModified(v.Now(), v.resp)
	case v.State.Document.SameBody(v.resp):
		v.State.Unchanged(v.Now(), v.resp)
	default:
		return false
	}
	return true
}

// Read records that the document was parsed and its entries stored, with its hints about the next
// fetch.
func (v *Visit) Read(hints Hints) { v.State.Succeeded(v.Now(), v.resp, hints) }

// Save saves the state, unless DryRun is set.
func (v *Visit) Save() error {
	if v.DryRun {
		return nil
	}
	if to := v.State.MovedTo(); to != "" && v.Moved != nil {
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
	v.State.Schedule.Failed(v.Now(), err)
	return v.State.Save()
}
