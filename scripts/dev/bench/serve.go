//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
)

// serve measures lektor-serve with a user who has many unread entries: the ids of all, the
// contents of some, marks of many, and clients at once while entries are delivered.
func (b *bench) serve() {
	n := sizes["served"]
	if n == 0 {
		return
	}
	ways := b.ours("lektor-serve")
	readers := map[*way]*reader{}
	for _, w := range ways {
		dir := filepath.Join(w.dir, "feeds")
		served(dir, n)
		readers[w] = w.reader(dir)
		defer func() { readers[w].stop() }()
	}
	row := func(what, unit string, count int, do func(r *reader, round int) string) {
		g := group{what: fmt.Sprintf("%s of %d", what, n), unit: unit, n: count, warm: true}
		b.compare(g, ways, func(w *way, round int) measurement {
			pid := readers[w].Process.Pid
			began, worked := time.Now(), processor(pid)
			note := do(readers[w], round)
			m := measurement{time: time.Since(began), cpu: processor(readers[w].Process.Pid),
				memory: memory(readers[w].Process.Pid), note: note}
			if readers[w].Process.Pid == pid { // not started again
				m.cpu -= worked
			}
			return m
		})
	}
	row("ids after a start", "ids", n, func(r *reader, _ int) string {
		r.again()
		return r.size(r.ids(n))
	})
	row("ids of all unread", "ids", n, func(r *reader, _ int) string { return r.size(r.ids(n)) })
	for _, some := range []int{min(250, n), min(10_000, n)} {
		row(fmt.Sprintf("contents of %d", some), "entries", some,
			func(r *reader, round int) string { return r.contents(some, round+1) })
	}
	row("unread-count and lists", "requests", 3, func(r *reader, _ int) string {
		for _, call := range []string{"unread-count", "subscription/list", "tag/list"} {
			r.get("/reader/api/0/" + call + "?output=json")
		}
		return ""
	})
	marks := min(10_000, n)
	row(fmt.Sprintf("mark %d", marks), "marks", marks,
		func(r *reader, round int) string { return r.mark(marks, round) })
	people := sizes["clients"]
	if people == 0 {
		return
	}
	const requests = 6
	row(fmt.Sprintf("%d clients beside deliveries", people), "requests", people*requests,
		func(r *reader, _ int) string { return r.crowd(people, requests) })
}

// processor returns the processor time that a process has used, in steps of 10 ms.
func processor(pid int) time.Duration {
	stat := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)))
	_, fields, _ := bytes.Cut(stat, []byte(") "))
	var user, system int64
	must.Get(fmt.Sscanf(string(bytes.Join(bytes.Fields(fields)[11:13], []byte(" "))), "%d %d", &user, &system))
	return time.Duration(user+system) * 10 * time.Millisecond
}

// reader is a lektor-serve or another server of the same API that runs, and a client of it.
type reader struct {
	*program
	w         *way
	dir       string
	url, auth string
	known     []string // ids
	feeds     []string // ids of streams
	inFolder  []string // of these in the folder
	end       func()   // stops what else was started for it, if not nil
	beside    int      // process of PostgreSQL, if it has one
}

// stop ends the server.
func (r *reader) stop() {
	if r.w.name == "Miniflux" {
		r.Process.Kill() // it waits for its workers
		r.Wait()
	} else {
		r.program.stop()
	}
	if r.end != nil {
		r.end()
	}
}

const (
	readerName     = "bench"
	readerPassword = "a password of the benchmark"
)

// reader starts lektor-serve for a lektor-dir.
func (w *way) reader(dir string) *reader {
	r := &reader{w: w, dir: dir}
	passwd := command(w.dir, filepath.Join(w.bin, "lektor-serve"), "passwd", "--state", filepath.Join(w.dir, "users"),
		"--dir", dir, readerName)
	passwd.Stdin = strings.NewReader(readerPassword + "\n")
	take(passwd)
	r.start()
	_, body := r.post("/accounts/ClientLogin", url.Values{"Email": {readerName}, "Passwd": {readerPassword}})
	_, auth, _ := strings.Cut(string(body), "Auth=")
	r.auth = strings.TrimSpace(auth)
	r.ids(sizes["served"])
	return r
}

func (r *reader) start() {
	addr := freePort()
	r.url = "http://" + addr
	r.program = &program{Cmd: command(r.w.dir, filepath.Join(r.w.bin, "lektor-serve"), "--listen", addr, "--state",
		filepath.Join(r.w.dir, "users"))}
	r.Stdout, r.Stderr = &r.said, &r.said
	must.Do(r.program.Start())
	wait("lektor-serve", 10*time.Second, r.program, func() bool {
		resp, err := http.Get(r.url + "/")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
}

// again stops the server and starts it.
func (r *reader) again() {
	r.stop()
	r.start()
}

func (r *reader) do(method, target, body string) (time.Duration, []byte) {
	req := must.Get(http.NewRequest(method, r.url+target, strings.NewReader(body)))
	if r.auth != "" {
		req.Header.Set("Authorization", "GoogleLogin auth="+r.auth)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	req.Header.Set("Accept-Encoding", "identity")
	began := time.Now()
	resp := must.Get(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	b := must.Get(io.ReadAll(resp.Body))
	if resp.StatusCode != http.StatusOK {
		must.Fail("%s %s: %s\n%.500s", method, target, resp.Status, b)
	}
	return time.Since(began), b
}

func (r *reader) get(target string) []byte {
	_, b := r.do(http.MethodGet, target, "")
	return b
}

func (r *reader) post(target string, form url.Values) (time.Duration, []byte) {
	return r.do(http.MethodPost, target, form.Encode())
}

const unreadIDs = "/reader/api/0/stream/items/ids?output=json&s=user/-/state/com.google/reading-list&xt=user/-/state/com.google/read&n="

// ids asks for the ids of all unread entries, of which there must be this many at least, and
// returns the answer.
func (r *reader) ids(least int) []byte {
	body := r.get(unreadIDs + "1000000")
	if got := bytes.Count(body, []byte(`"id"`)); got < least {
		must.Fail("%d ids, want %d", got, least)
	}
	if r.known == nil {
		var answer struct{ ItemRefs []struct{ ID string } }
		must.Do(json.Unmarshal(body, &answer))
		for _, ref := range answer.ItemRefs {
			r.known = append(r.known, ref.ID)
		}
	}
	return body
}

// size is a note of how long an answer is.
func (r *reader) size(body []byte) string { return fmt.Sprintf("%.1f MB", float64(len(body))/1e6) }

// contents asks for n entries, others in each round.
func (r *reader) contents(n, round int) string {
	from := round * n % (len(r.known) - n + 1)
	_, body := r.post("/reader/api/0/stream/items/contents?output=json", url.Values{"i": r.known[from : from+n]})
	if got := bytes.Count(body, []byte(`"origin"`)); got != n {
		must.Fail("%d entries, want %d", got, n)
	}
	return r.size(body)
}

// mark marks n entries as read, and in the next round as unread, by one request.
func (r *reader) mark(n, round int) string {
	sign := "a"
	if round%2 != 0 {
		sign = "r"
	}
	_, body := r.post("/reader/api/0/edit-tag", url.Values{"i": r.known[:n], sign: {"user/-/state/com.google/read"}})
	if string(body) != "OK" {
		must.Fail("a mark is answered with %.500q", body)
	}
	return ""
}

// crowd lets clients make requests at once while entries are delivered, and returns how long
// the requests took.
func (r *reader) crowd(people, requests int) string {
	end := beside(arriveTask, r.dir)
	var mu sync.Mutex
	var took []time.Duration
	var clients sync.WaitGroup
	failed := make(chan error, people)
	for p := range people {
		clients.Go(func() {
			failed <- must.Run(func() {
				for k := range requests {
					d := r.oneOf(p, k)
					mu.Lock()
					took = append(took, d)
					mu.Unlock()
				}
			})
		})
	}
	clients.Wait()
	end()
	for range people {
		must.Do(<-failed)
	}
	slices.Sort(took)
	return fmt.Sprintf("a request: median %s, slowest %s", show(took[len(took)/2]), show(took[len(took)-1]))
}

// oneOf makes the k-th request of a client.
func (r *reader) oneOf(client, k int) (took time.Duration) {
	at := client * 100 % max(1, len(r.known)-100)
	some := url.Values{"i": r.known[at:min(at+100, len(r.known))]}
	switch k % 3 {
	case 0:
		took, _ = r.do(http.MethodGet, unreadIDs+"1000", "")
	case 1:
		took, _ = r.post("/reader/api/0/stream/items/contents?output=json", some)
	case 2:
		some["a"] = []string{"user/-/state/com.google/starred"}
		took, _ = r.post("/reader/api/0/edit-tag", some)
	}
	return took
}
