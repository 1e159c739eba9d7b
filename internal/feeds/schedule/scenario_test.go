package schedule

import (
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/testkit/server"
)

// fetcher simulates the part of lektor-fetch that uses this package.
type fetcher struct {
	t     *testing.T
	dir   string
	c     *fetch.Client
	clk   *server.Clock
	hints Hints
	rand  float64
}

// run fetches the feed if it is due. It loads and saves the state, as a separate process would.
func (f *fetcher) run() {
	f.t.Helper()
	if !dueAt(f.dir, f.clk.Now()) {
		return
	}
	s, err := LoadFrom(f.dir)
	if err != nil {
		f.t.Fatal(err)
	}
	s.Schedule.Rand = func() float64 { return f.rand }
	if !s.Schedule.Due(f.clk.Now()) {
		f.t.Fatal("isDue and State.Due disagree")
	}
	req, err := s.Request()
	if err != nil {
		f.t.Fatal(err)
	}
	res, err := f.c.Get(f.t.Context(), req)
	switch now := f.clk.Now(); {
	case err != nil:
		s.Schedule.Failed(now, err)
	case res.NotModified:
		s.NotModified(now, res)
	case s.Document.SameBody(res):
		s.Unchanged(now, res)
	default:
		s.Succeeded(now, res, f.hints)
	}
	if err := s.Save(); err != nil {
		f.t.Fatal(err)
	}
	if w := s.Warnings(); len(w) > 0 {
		f.t.Errorf("warnings: %q", w)
	}
}

// A fetcher that runs every minute for days makes exactly the expected requests.
func TestEveryMinute(t *testing.T) {
	type handler func(n int, w http.ResponseWriter, r *http.Request) // n counts from 0
	const etag, odd = `"v1"`, "W/\"a\xff\xfe b\""
	ok := func(w http.ResponseWriter, r *http.Request, tag string) {
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(304)
			return
		}
		fmt.Fprint(w, rss)
	}
	for name, c := range map[string]struct {
		days     int
		interval string
		hints    Hints
		serve    handler
		// want lists the requests: minutes since the start, path, and the
		// validator sent.
		want []string
	}{
		"hourly, then 304": {days: 1, serve: func(_ int, w http.ResponseWriter, r *http.Request) { ok(w, r, etag) },
			want: every(0, 60, 24, etag)},
		"odd bytes": {days: 1, serve: func(_ int, w http.ResponseWriter, r *http.Request) { ok(w, r, odd) },
			want: every(0, 60, 24, odd)},
		"no validators": {days: 1, serve: func(_ int, w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, rss) },
			want: every(0, 60, 24, "")},
		"a 304 about another document": {days: 1, interval: "8h", serve: func(n int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", fmt.Sprintf(`"%d"`, n))
			if r.Header.Get("If-None-Match") != "" {
				w.WriteHeader(304)
				return
			}
			fmt.Fprint(w, rss)
		}, want: []string{"0 / ", `480 / "0"`, "480 / ", `960 / "2"`, "960 / "}},
		"the user's interval": {days: 1, interval: "5h", serve: func(_ int, w http.ResponseWriter, r *http.Request) { ok(w, r, etag) },
			want: every(0, 300, 5, etag)},
		"an interval of more than a day": {days: 5, interval: "2d", serve: func(_ int, w http.ResponseWriter, r *http.Request) { ok(w, r, etag) },
			want: every(0, 2880, 3, etag)},
		"max-age on 200 and 304": {days: 1, interval: "10m", serve: func(_ int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=3600")
			ok(w, r, etag)
		}, want: every(0, 60, 24, etag)},
		"max-age on 200 only": {days: 1, interval: "10m", serve: func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 0 {
				w.Header().Set("Cache-Control", "max-age=14400")
			}
			ok(w, r, etag)
		}, want: every(0, 240, 6, etag)},
		"max-age that changes with 304, and Age": {days: 1, interval: "10m", serve: func(n int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age="+[]string{"3600", "7200", "0", "43200", "bogus"}[n%5])
			w.Header().Set("Age", "600")
			ok(w, r, etag)
			// 50 minutes, 110, 10 (the interval), 710, 10
		}, want: []string{"0 / ", "50 / " + etag, "160 / " + etag, "170 / " + etag, "880 / " + etag, "890 / " + etag, "940 / " + etag, "1050 / " + etag, "1060 / " + etag}},
		"Expires": {days: 1, interval: "10m", serve: func(_ int, w http.ResponseWriter, r *http.Request) {
			// The server's clock is wrong; only the difference counts.
			w.Header().Set("Date", "Thu, 01 Jan 2015 00:00:00 GMT")
			w.Header().Set("Expires", "Thu, 01 Jan 2015 06:00:00 GMT")
			ok(w, r, etag)
		}, want: every(0, 360, 4, etag)},
		"a year of max-age is a day": {days: 3, serve: func(_ int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=31536000")
			ok(w, r, etag)
		}, want: every(0, 1440, 3, etag)},
		"ttl holds after 304": {days: 1, hints: Hints{TTL: 3 * time.Hour}, serve: func(_ int, w http.ResponseWriter, r *http.Request) { ok(w, r, etag) },
			want: every(0, 180, 8, etag)},
		"updatePeriod holds for an unchanged body": {days: 2, hints: Hints{TTL: time.Hour, UpdateInterval: 12 * time.Hour},
			serve: func(_ int, w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, rss) }, want: every(0, 720, 4, "")},
		// The loop starts at noon GMT on a Monday.
		"skipHours": {days: 1, hints: Hints{SkipHours: []int{13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
			serve: func(_ int, w http.ResponseWriter, r *http.Request) { ok(w, r, etag) },
			want:  append([]string{"0 / "}, every(240, 60, 8, etag, etag)...)},
		"skipDays": {days: 4, interval: "1d", hints: Hints{SkipDays: []time.Weekday{time.Tuesday, time.Wednesday}},
			serve: func(_ int, w http.ResponseWriter, r *http.Request) { ok(w, r, etag) },
			want:  []string{"0 / ", "3600 / " + etag, "5040 / " + etag}},
		"all hours skipped": {days: 1, interval: "12h", hints: Hints{SkipHours: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}},
			serve: func(_ int, w http.ResponseWriter, r *http.Request) { ok(w, r, etag) }, want: every(0, 720, 2, etag)},
		"429 with Retry-After": {days: 1, serve: func(n int, w http.ResponseWriter, r *http.Request) {
			if n < 2 {
				w.Header().Set("Retry-After", "36000")
				w.WriteHeader(429)
				return
			}
			ok(w, r, etag)
		}, want: append([]string{"0 / ", "600 / "}, every(1200, 60, 4, "", etag)...)},
		"503 with a date": {days: 3, serve: func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				w.Header().Set("Date", "Thu, 01 Jan 2015 00:00:00 GMT")
				w.Header().Set("Retry-After", "Sat, 03 Jan 2015 00:00:00 GMT")
				w.WriteHeader(503)
				return
			}
			ok(w, r, etag)
		}, want: append([]string{"0 / ", "60 / " + etag}, every(2940, 60, 23, etag, etag)...)},
		"a short Retry-After does not undercut the interval": {days: 1, interval: "6h", serve: func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 0 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(503)
				return
			}
			ok(w, r, etag)
		}, want: []string{"0 / ", "360 / ", "720 / " + etag, "1080 / " + etag}},
		"failures back off, and end with a success": {days: 4, serve: func(n int, w http.ResponseWriter, r *http.Request) {
			switch {
			case n == 8 || n < 1:
				ok(w, r, etag)
			default:
				w.WriteHeader([]int{500, 404, 403}[n%3])
			}
			// 1, 2, 4, 8, 16, 19.2, 19.2 hours; after the success, 1 and 2.
		}, want: []string{"0 / ", "60 / " + etag, "120 / " + etag, "240 / " + etag, "480 / " + etag, "960 / " + etag, "1920 / " + etag,
			"3072 / " + etag, "4224 / " + etag, "4284 / " + etag, "4344 / " + etag, "4464 / " + etag, "4704 / " + etag, "5184 / " + etag}},
		"410 is fetched monthly, and may end": {days: 92, interval: "10d", serve: func(n int, w http.ResponseWriter, r *http.Request) {
			switch n {
			case 0, 3, 4:
				ok(w, r, etag)
			case 2:
				w.WriteHeader(500) // the feed is still gone
			default:
				w.WriteHeader(410)
			}
		}, want: []string{"0 / ", "14400 / " + etag, "57600 / " + etag, "100800 / " + etag, "115200 / " + etag, "129600 / " + etag}},
		"301 three times": {days: 1, interval: "2h", serve: func(n int, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				http.Redirect(w, r, "/new", 301)
				return
			}
			ok(w, r, etag)
		}, want: append([]string{"0 / ", "0 /new ", "120 / ", "120 /new " + etag, "240 / ", "240 /new " + etag, "360 /new "},
			onPath("/new", every(480, 120, 8, etag, etag))...)},
		"308 to changing targets": {days: 1, interval: "4h", serve: func(n int, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				http.Redirect(w, r, fmt.Sprint("/new", n/4), 308)
				return
			}
			ok(w, r, etag)
		}, want: []string{"0 / ", "0 /new0 ", "240 / ", "240 /new0 " + etag, "480 / ", "480 /new1 ",
			"720 / ", "720 /new1 " + etag, "960 / ", "960 /new2 ", "1200 / ", "1200 /new2 " + etag}},
		"302 and later redirects are never saved": {days: 1, interval: "6h", serve: func(n int, w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/":
				http.Redirect(w, r, "/b", 302)
			case "/b":
				http.Redirect(w, r, "/c", 301)
			default:
				ok(w, r, etag)
			}
		}, want: []string{"0 / ", "0 /b ", "0 /c ", "360 / ", "360 /b ", "360 /c " + etag,
			"720 / ", "720 /b ", "720 /c " + etag, "1080 / ", "1080 /b ", "1080 /c " + etag}},
		"a redirect that begins and ends": {days: 1, interval: "4h", serve: func(n int, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" && n > 1 && n < 6 {
				http.Redirect(w, r, "/b", 302)
				return
			}
			ok(w, r, etag)
			// The validators of / are sent to / until new ones replace them, and never to /b.
		}, want: []string{"0 / ", "240 / " + etag, "480 / " + etag, "480 /b ", "720 / ", "720 /b " + etag, "960 / ", "1200 / " + etag}},
		"a 301 before a 302 is saved": {days: 1, interval: "5h", serve: func(n int, w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/":
				http.Redirect(w, r, "/b", 301)
			case "/b":
				http.Redirect(w, r, "/c", 302)
			default:
				fmt.Fprint(w, rss)
			}
		}, want: []string{"0 / ", "0 /b ", "0 /c ", "300 / ", "300 /b ", "300 /c ", "600 / ", "600 /b ", "600 /c ", "900 /b ", "900 /c ", "1200 /b ", "1200 /c "}},
	} {
		t.Run(name, func(t *testing.T) {
			clk := server.NewClock()
			start := clk.Now()
			n := 0
			var got []string
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				got = append(got, fmt.Sprint(int(clk.Now().Sub(start).Minutes()), " ", r.URL.Path, " ", r.Header.Get("If-None-Match")))
				n++
				c.serve(n-1, w, r)
			})
			f := &fetcher{t: t, dir: filepath.Join(t.TempDir(), "fetch"), clk: clk, hints: c.hints,
				c: client(t, func(cfg *fetch.Config) { cfg.Now, cfg.Sleep = clk.Now, clk.Sleep })}
			write(t, f.dir, "url", s.URL+"/\n")
			if c.interval != "" {
				write(t, f.dir, "interval", c.interval+"\n")
			}
			for range c.days * 24 * 60 {
				f.run()
				clk.Add(time.Minute)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("the server saw\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// every returns n requests for /, beginning at the minute from, every step minutes. If two validators are
// passed, the first request has the first one; otherwise it has none. The other requests have the last.
func every(from, step, n int, etag ...string) []string {
	var out []string
	for i := range n {
		v := etag[len(etag)-1]
		if i == 0 {
			v = ""
			if len(etag) > 1 {
				v = etag[0]
			}
		}
		out = append(out, fmt.Sprint(from+i*step, " / ", v))
	}
	return out
}

// onPath returns the requests with another path.
func onPath(path string, reqs []string) []string {
	for i := range reqs {
		reqs[i] = strings.Replace(reqs[i], " / ", " "+path+" ", 1)
	}
	return reqs
}
