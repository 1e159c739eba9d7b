package schedule

import (
	"errors"
	"net/http"
	"net/textproto"
	"path/filepath"
	"testing"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/http/httpmsg"
)

// Each way of ending a visit saves the right files. Validators are saved only after the document was read.
func TestVisit(t *testing.T) {
	refused := errors.New("no feed")
	for _, c := range []struct {
		name         string
		status       int
		end          func(s *State, resp *httpmsg.Response) error
		etag, failed string
		checked      bool
	}{
		{name: "read", status: 200, end: func(s *State, resp *httpmsg.Response) error {
			s.Succeeded(noon, resp, Hints{})
			return s.Save()
		}, etag: "\"1\"\n", failed: "-", checked: true},
		{name: "not stored", status: 200, end: func(*State, *httpmsg.Response) error { return nil }, etag: "-", failed: "-"},
		{name: "not readable", status: 200, end: func(s *State, _ *httpmsg.Response) error { return s.Fail(noon, refused) }, etag: "-", failed: "no feed\n", checked: true},
		{name: "status 500", status: 500, end: func(s *State, _ *httpmsg.Response) error { return s.Fail(noon, refused) }, etag: "-", failed: "no feed\n", checked: true},
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
			ask := func() (*State, *httpmsg.Response) {
				st := load(t, dir)
				req, err := st.Request()
				if err != nil {
					t.Fatal(err)
				}
				resp, err := client(t).Get(t.Context(), req)
				if (err == nil) != (c.status == 200 || req.ETag != "") {
					t.Fatal(resp, err)
				}
				return st, resp
			}
			st, resp := ask()
			if resp != nil && (resp.ETag != `"1"` || st.Known(noon, resp)) {
				t.Fatal(resp)
			}
			if err := c.end(st, resp); err != nil {
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
			st, resp = ask()
			if !resp.NotModified || !st.Known(noon, resp) || st.Save() != nil {
				t.Error(resp)
			}
			if !load(t, dir).Known(noon, &httpmsg.Response{Status: 200, Header: textproto.MIMEHeader{}, Body: []byte(rss)}) {
				t.Error("the same body is not known")
			}
		})
	}
}
