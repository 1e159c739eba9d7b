package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/http/httpmsg"
)

// file is the target of a download.
type file struct {
	bytes.Buffer
	begun []Piece
	err   error
}

func (f *file) begin(p Piece) (io.Writer, error) {
	f.begun = append(f.begun, p)
	f.Truncate(int(p.At))
	return f, f.err
}

// liar serves a text like a correct server, or with the defect in how. ranges holds the requested
// ranges.
type liar struct {
	text   string
	etag   string
	how    string
	ranges []string
}

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked := r.Header.Get("Range")
	l.ranges = append(l.ranges, asked)
	from := 0
	if asked != "" {
		from, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(asked, "bytes="), "-"))
	}
	h := w.Header()
	whole := func(text string) {
		h.Set("Content-Length", strconv.Itoa(len(text)))
		io.WriteString(w, text)
	}
	part := func(from, to, total int, text string) {
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, total))
		h.Set("Content-Length", strconv.Itoa(len(text)))
		w.WriteHeader(http.StatusPartialContent)
		io.WriteString(w, text)
	}
	n := len(l.text)
	if l.etag != "" {
		h.Set("ETag", l.etag)
	}
	switch {
	case l.how == "": // as Apache and nginx
		http.ServeContent(w, r, "x.mp3", time.Time{}, strings.NewReader(l.text))
	case l.how == "dated":
		http.ServeContent(w, r, "x.mp3", time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), strings.NewReader(l.text))
	case l.how == "no ranges", asked == "" && l.how != "cuts" && l.how != "half and half" && l.how != "gzip" && l.how != "part of nothing" && l.how != "endless":
		whole(l.text)
	case l.how == "another range":
		part(0, n-1, n, l.text)
	case l.how == "a later range":
		part(from+1, n-1, n, l.text[from+1:])
	case l.how == "another file":
		h.Set("ETag", `"other"`)
		part(from, n-1, n, strings.ToUpper(l.text[from:]))
	case l.how == "another size":
		part(from, n, n+1, strings.ToUpper(l.text[from:])+"!")
	case l.how == "no range said":
		w.WriteHeader(http.StatusPartialContent)
		io.WriteString(w, l.text[from:])
	case l.how == "several ranges":
		h.Set("Content-Type", "multipart/byteranges; boundary=x")
		w.WriteHeader(http.StatusPartialContent)
		io.WriteString(w, "--x\r\n\r\n"+l.text[from:]+"\r\n--x--")
	case l.how == "wrong length":
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, n-1, n))
		w.WriteHeader(http.StatusPartialContent)
		io.WriteString(w, l.text[from:]+"more than that")
	case l.how == "416":
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
	case l.how == "pieces":
		part(from, min(from+9, n-1), n, l.text[from:min(from+10, n)])
	case l.how == "half and half", l.how == "cuts":
		// Break off after some bytes.
		rest := l.text[from:]
		h.Set("Content-Length", strconv.Itoa(len(rest)))
		if from > 0 {
			h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, n-1, n))
			w.WriteHeader(http.StatusPartialContent)
		}
		if l.how == "half and half" && from > 0 {
			io.WriteString(w, rest)
			return
		}
		io.WriteString(w, rest[:min(10, len(rest))])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	case l.how == "gzip":
		h.Set("Content-Encoding", "gzip")
		whole(l.text)
	case l.how == "part of nothing":
		part(0, n-1, n, l.text)
	case l.how == "endless":
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, l.text); err != nil {
				return
			}
		}
	}
}

// If Download succeeds, the file is whole, and each range was requested with a validator.
func TestDownload(t *testing.T) {
	text := strings.Repeat("0123456789", 20)
	text = text[:len(text)-3] + "end"
	const tag = `"tag"`
	for _, tc := range []struct {
		how, etag string
		have      int
		validator string
		total     int64
		ranges    string // asked for
		err       string
		short     bool // the download is incomplete
	}{
		{how: "", etag: tag, ranges: ""},
		{how: "", etag: tag, have: 50, validator: tag, total: 200, ranges: "bytes=50-"},
		{how: "", etag: tag, have: 50, validator: tag, total: -1, ranges: "bytes=50-"},
		{how: "", etag: tag, have: 200, validator: tag, total: 200, ranges: "none"},
		// The file is complete, but its size is unknown: the requested range is empty.
		{how: "", etag: tag, have: 200, validator: tag, total: -1, ranges: "bytes=200- "},
		// The server has another file.
		{how: "", etag: `"new"`, have: 50, validator: tag, total: 200, ranges: "bytes=50-"},
		// The bytes present have no validator, or are more than the total.
		{how: "", etag: tag, have: 50, total: 200, ranges: ""},
		{how: "", etag: tag, have: 250, validator: tag, total: 200, ranges: ""},
		{how: "dated", have: 50, validator: "Wed, 01 Jan 2020 00:00:00 GMT", total: 200, ranges: "bytes=50-"},
		{how: "dated", have: 50, validator: "Tue, 31 Dec 2019 00:00:00 GMT", total: 200, ranges: "bytes=50-"},
		{how: "no ranges", etag: tag, have: 50, validator: tag, total: 200, ranges: "bytes=50-"},
		{how: "another range", etag: tag, have: 50, validator: tag, total: 200, ranges: "bytes=50- "},
		{how: "a later range", etag: tag, have: 50, validator: tag, total: 200, ranges: "bytes=50- "},
		{how: "another file", have: 50, validator: tag, total: 200, ranges: "bytes=50- "},
		{how: "another size", etag: tag, have: 50, validator: tag, total: 200, ranges: "bytes=50- "},
		{how: "no range said", etag: tag, have: 50, validator: tag, total: 200, ranges: "bytes=50- "},
		{how: "several ranges", etag: tag, have: 50, validator: tag, total: 200, ranges: "bytes=50- "},
		{how: "wrong length", etag: tag, have: 50, validator: tag, total: 200, ranges: "bytes=50- "},
		{how: "416", etag: tag, have: 50, validator: tag, total: 200, ranges: "bytes=50- "},
		{how: "pieces", etag: tag, have: 165, validator: tag, total: 200, ranges: "bytes=165- bytes=175- bytes=185- bytes=195-"},
		{how: "half and half", etag: tag, ranges: " bytes=10-"},
		{how: "half and half", etag: "W/" + tag, ranges: "", err: "cut off after 10 of 200 bytes", short: true},
		{how: "cuts", etag: tag, ranges: " bytes=10- bytes=20- bytes=30-", err: "cut off after 40 of 200 bytes", short: true},
		{how: "gzip", etag: tag, ranges: "", err: "compressed, although that was not requested (gzip)", short: true},
		{how: "part of nothing", etag: tag, ranges: "", err: "206 Partial Content: a part, although the whole file was requested", short: true},
		{how: "endless", etag: tag, ranges: "", err: "10000 bytes transferred", short: true},
	} {
		name := fmt.Sprintf("%s, %d of %d, %s", tc.how, tc.have, tc.total, tc.validator)
		l := &liar{text: text, etag: tc.etag, how: tc.how}
		s := httptest.NewServer(l)
		c := NewClient(Config{Gap: -1, MaxBytes: 10_000})
		f := &file{}
		f.WriteString(text[:min(tc.have, len(text))] + strings.Repeat("x", max(0, tc.have-len(text))))
		d := &Download{URL: s.URL + "/x.mp3", Origin: s.URL, Have: int64(tc.have), Validator: tc.validator, Total: tc.total}
		err := c.Download(t.Context(), d, f.begin)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Join(l.ranges, " "); got != tc.ranges && (tc.ranges != "none" || len(l.ranges) > 0) {
			t.Errorf("%s: asked for %q, not %q", name, got, tc.ranges)
		}
		if got := f.String(); !tc.short && got != text {
			t.Errorf("%s: there is %q", name, got)
		} else if tc.short && tc.how != "endless" && !strings.HasPrefix(text, got) {
			t.Errorf("%s: there is %q", name, got)
		}
		c.Close()
		s.CloseClientConnections()
		s.Close()
	}
}

// A failing writer ends the download with a WriteError, and a silent server ends it at the
// deadline.
func TestDownloadFails(t *testing.T) {
	stop := make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/round" {
			http.Redirect(w, r, "/round", http.StatusFound)
			return
		}
		io.WriteString(w, "some")
		w.(http.Flusher).Flush()
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(stop)
	c := NewClient(Config{Gap: -1, Deadline: time.Minute})
	defer c.Close()
	full := errors.New("no space left on device")
	err := c.Download(t.Context(), &Download{URL: s.URL, Origin: s.URL}, (&file{err: full}).begin)
	if !errors.Is(err, full) || !errors.As(err, new(*WriteError)) || httpmsg.Remote(err) {
		t.Errorf("%v", err)
	}
	f := &file{}
	longer(t, 100*time.Millisecond, func(deadline time.Duration) bool {
		c := NewClient(Config{Gap: -1, Deadline: deadline})
		defer c.Close()
		f = &file{}
		err = c.Download(t.Context(), &Download{URL: s.URL, Origin: s.URL}, f.begin)
		if e := (*httpmsg.NetError)(nil); !errors.As(err, &e) || e.Kind != httpmsg.KindTimeout || !httpmsg.Remote(err) {
			t.Errorf("%v, %q", err, f)
		}
		return f.String() == "some"
	})
	err = c.Download(t.Context(), &Download{URL: s.URL + "/round", Origin: s.URL}, f.begin)
	if !errors.As(err, new(*httpmsg.RedirectError)) {
		t.Errorf("%v", err)
	}
	// A public document must not cause requests to this machine.
	err = c.Download(t.Context(), &Download{URL: s.URL, Origin: "http://feed.example/"}, f.begin)
	if !errors.As(err, new(*httpmsg.PrivateError)) {
		t.Errorf("%v", err)
	}
	err = c.Download(t.Context(), &Download{URL: s.URL, Origin: "urn:x:1"}, f.begin)
	if !errors.As(err, new(*httpmsg.PrivateError)) {
		t.Errorf("%v", err)
	}
}

func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 0-9/10", "bytes 5-9/*", "bytes */10", "Bytes 1-2/3", "bytes 9-5/10", "bytes 0-10/10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, v string) {
		from, to, total, ok := contentRange(v)
		if ok && (from < 0 || to < from || total >= 0 && total <= to) {
			t.Fatalf("%q: %d-%d/%d", v, from, to, total)
		}
	})
}
