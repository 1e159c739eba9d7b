package feeddir

import (
	"context"
	"time"

	"github.com/lektordir/lektor/internal/fetch"
)

// Visit is one exchange with a feed, or with another document that a [State] is
// kept of. Its steps, in their order:
//
//   - [Visit.Ask] makes a request;
//   - [Visit.Known] tells that the answer brings nothing new, and takes note of it;
//   - or else the caller reads the document, keeps what is in it, and says so by
//     [Visit.Read];
//   - [Visit.Save] saves what is known now.
//
// Two things end it earlier. When nothing came that could be read, [Visit.Fail]
// does, and the source is asked less often. When what came could not be kept, it
// is just left: nothing is saved, the validators least of all, so that the
// document comes again as soon as this machine can take it. The same holds when
// the context ends: whatever is visited is then as due as it was before.
//
// As a State, it is not safe for concurrent use.
type Visit struct {
	*State
	Client *fetch.Client
	Now    func() time.Time
	// DryRun saves nothing.
	DryRun bool
	// Moved, when set, is told by Save of a new URL ([State.MovedTo]), before
	// it is saved.
	Moved func(url string) error

	resp *fetch.Response
}

// Ask makes the request. An error is one for Fail.
func (v *Visit) Ask(ctx context.Context, r *fetch.Request) (*fetch.Response, error) {
	resp, err := v.Client.Get(ctx, r)
	v.resp = resp
	return resp, err
}

// Answered is Ask with an answer that was had before.
func (v *Visit) Answered(resp *fetch.Response) { v.resp = resp }

// Known reports whether the answer brings nothing that was not read before.
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

// Read takes note that the document was read and what was in it kept, and when it
// asks to be fetched again.
func (v *Visit) Read(hints Hints) { v.Succeeded(v.Now(), v.resp, hints) }

// Save saves what is known, unless it is a dry run.
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

// Fail takes note of an error by which nothing came that could be read, and saves
// it, unless ctx has ended or it is a dry run. It returns the error of saving.
func (v *Visit) Fail(ctx context.Context, err error) error {
	if ctx.Err() != nil || v.DryRun {
		return nil
	}
	v.Failed(v.Now(), err)
	return v.State.Save()
}
