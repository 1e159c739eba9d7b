package schedule

import (
	"context"
	"errors"
	"net/http"
	"net/textproto"
	"path/filepath"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/http/httpmsg"
)

// Each way of ending a visit saves the right files. Validators are saved only after the document was read.
func TestVisit(t *testing.T) {
	refused := errors.New("no feed")
	for _, c := range []struct {
		name         string
		status       int
		end          func(ctx context.Context, v *Visit) error
		dry          bool
		etag, failed string
		checked      bool
	}{
		{name: "read", status: 200, end: func(_ context.Context, v *Visit) error { v.Read(Hints{}); return v.Save() }, etag: "\"1\"\n", failed: "-", checked: true},
		{name: "read, in a dry run", status: 200, end: func(_ context.Context, v *Visit) error { v.Read(Hints{}); return v.Save() }, dry: true, etag: "-", failed: "-"},
		{name: "not stored", status: 200, end: func(context.Context, *Visit) error { return nil }, etag: "-", failed: "-"},
		{name: "not readable", status: 200, end: func(ctx context.Context, v *Visit) error { return v.Fail(ctx, refused) }, etag: "-", failed: "no feed\n", checked: true},
		{name: "status 500", status: 500, end: func(ctx context.Context, v *Visit) error { return v.Fail(ctx, refused) }, etag: "-", failed: "no feed\n", checked: true},
		{name: "failed in a dry run", status: 500, end: func(ctx context.Context, v *Visit) error { return v.Fail(ctx, refused) }, dry: true, etag: "-", failed: "-"},
		{name: "stopped", status: 200, end: func(ctx context.Context, v *Visit) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return v.Fail(ctx, refused)
		}, etag: "-", failed: "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("If-None-Match") != "" {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				w.Header().Set("Etag", `"1"`)
				w.WriteHeader(c.status)
				w.Write([]byte(rss))
			})
			dir := filepath.Join(t.TempDir(), "fetch")
			write(t, dir, feedfiles.FileURL, s.URL+"\n")
			visit := func() *Visit {
				return &Visit{State: load(t, dir), Client: client(t), Now: func() time.Time { return noon }, DryRun: c.dry}
			}
			v := visit()
			req, err := v.State.Request()
			if err != nil {
				t.Fatal(err)
			}
			if resp, err := v.Ask(t.Context(), req); (err == nil) != (c.status == 200) || err == nil && (resp.ETag != `"1"` || v.Known()) {
				t.Fatal(resp, err)
			}
			if err := c.end(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			if etag, failed := value(t, dir, fileETag), value(t, dir, fileError); etag != c.etag || failed != c.failed {
				t.Errorf("etag %q, error %q", etag, failed)
			}
			if checked := value(t, dir, fileChecked) != "-"; checked != c.checked {
				t.Errorf("checked: %v", checked)
			}
			if c.etag == "-" {
				return
			}
			// At the next visit the document is known, with a 304 or the same body.
			v = visit()
			if req, err = v.State.Request(); err != nil || req.ETag != `"1"` {
				t.Fatal(req, err)
			}
			if _, err := v.Ask(t.Context(), req); err != nil || !v.Known() || v.Save() != nil {
				t.Error(err)
			}
			v = visit()
			v.Answered(&httpmsg.Response{Status: 200, Header: textproto.MIMEHeader{}, Body: []byte(rss)})
			if !v.Known() {
				t.Error("the same body is not known")
			}
		})
	}
}
