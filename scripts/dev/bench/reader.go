//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/lektordir"
)

// readers measures single requests of clients, and whole syncs, of lektor-serve beside Miniflux with
// PostgreSQL, if these are installed.
func (b *bench) readers() {
	n := sizes["served"]
	if n == 0 {
		return
	}
	ways := append(b.ours("lektor-serve"), b.other("Miniflux", "miniflux", "initdb", "postgres", "psql")...)
	readers := map[*way]*reader{}
	for _, w := range ways {
		dir := filepath.Join(w.dir, "feeds")
		if w.name == "Miniflux" {
			readers[w] = w.miniflux(filepath.Join(ways[0].dir, "feeds"))
		} else {
			served(dir, n)
			readers[w] = w.reader(dir)
		}
		defer func() { readers[w].stop() }()
		readers[w].prepare()
	}
	row := func(what string, times int, do func(r *reader, k int)) {
		b.compare(group{what: what, unit: "requests", n: 1, warm: true}, ways, func(w *way, _ int) measurement {
			r := readers[w]
			var took []time.Duration
			for k := range times {
				began := time.Now()
				do(r, k)
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			return measurement{time: took[len(took)/2], memory: memory(r.Process.Pid)}
		})
	}
	get := func(what, path string) {
		row(what, 20, func(r *reader, _ int) { r.get(call + path) })
	}
	row("a feed's ids", 20, func(r *reader, k int) { r.get(call + idsOf + r.feeds[k%len(r.feeds)] + "&n=1000") })
	get("starred ids", idsOf+"user/-/state/com.google/starred&n=1000")
	get("subscription/list", "subscription/list?output=json")
	get("tag/list", "tag/list?output=json")
	row("contents of 20", 20, func(r *reader, k int) {
		r.post(call+"stream/items/contents?output=json", url.Values{"T": {r.auth}, "i": r.known[20*k : 20*k+20]})
	})
	get("1000 unread ids", strings.TrimPrefix(unreadIDs, call)+"1000")
	get("10000 unread ids", strings.TrimPrefix(unreadIDs, call)+"10000")
	row("one mark", 20, func(r *reader, k int) { r.tag("a", r.known[k:k+1]) })
	row("one unmark", 20, func(r *reader, k int) { r.tag("r", r.known[k:k+1]) })
	row("ids after a mark", 20, func(r *reader, k int) {
		r.tag("a", r.known[100+k:101+k])
		r.get(call + idsOf + r.feeds[0] + "&n=1000")
	})
	b.compare(group{what: fmt.Sprintf("mark-all of %d", n/20), unit: "requests", n: 1, warm: true}, ways,
		func(w *way, _ int) measurement { return readers[w].markAll() })
	if people := sizes["clients"]; people > 0 {
		b.compare(group{what: fmt.Sprintf("%d clients sync", people), unit: "syncs", n: people, warm: true}, ways,
			func(w *way, _ int) measurement {
				began := time.Now()
				readers[w].syncs(people)
				return measurement{time: time.Since(began), memory: memory(readers[w].Process.Pid)}
			})
	}
}

// Beginnings of paths.
const (
	call  = "/reader/api/0/"
	idsOf = "stream/items/ids?output=json&s="
)

// markAll marks the entries of a folder as read, and then makes them unread again.
func (r *reader) markAll() measurement {
	began := time.Now()
	r.post(call+"mark-all-as-read", url.Values{"T": {r.auth}, "s": {folder}})
	m := measurement{time: time.Since(began)}
	for _, feed := range r.inFolder {
		var answer struct{ ItemRefs []struct{ ID string } }
		must.Do(json.Unmarshal(r.get(call+idsOf+feed+"&n=100000"), &answer))
		var all []string
		for _, ref := range answer.ItemRefs {
			all = append(all, ref.ID)
		}
		r.tag("r", all)
	}
	return m
}

// folder has one of twenty feeds.
const folder = "user/-/label/topic7"

// served makes the lektor-dir of a user of lektor-serve.
func served(dir string, entries int) {
	library{
		feeds: max(1, entries/100), entries: entries, size: sizes["bytes"],
		age:  func(i int) time.Duration { return time.Duration(i) * time.Minute },
		read: func(int) bool { return false },
	}.make(dir)
	for _, src := range must.Get(filepath.Glob(filepath.Join(dir, "src/*"))) {
		must.Do(os.WriteFile(filepath.Join(src, "etc/fetch/url"), must.Get(os.ReadFile(filepath.Join(src, "id"))),
			0o666))
	}
}

// prepare asks for the ids of feeds and items, and stars some.
func (r *reader) prepare() {
	var list struct {
		Subscriptions []struct {
			ID         string
			Categories []struct{ Label string }
		}
	}
	must.Do(json.Unmarshal(r.get(call+"subscription/list?output=json"), &list))
	for _, s := range list.Subscriptions {
		r.feeds = append(r.feeds, s.ID)
		if len(s.Categories) > 0 && folder == "user/-/label/"+s.Categories[0].Label {
			r.inFolder = append(r.inFolder, s.ID)
		}
	}
	r.known = nil
	r.ids(min(1000, sizes["served"]))
	for part := range slices.Chunk(r.known[:min(len(r.known), 5000)], 100) {
		r.post(call+"edit-tag", url.Values{"T": {r.auth}, "i": part[:2], "a": {"user/-/state/com.google/starred"}})
	}
}

// tag adds the state read to items, or removes it.
func (r *reader) tag(sign string, items []string) {
	r.post(call+"edit-tag", url.Values{"T": {r.auth}, "i": items, sign: {"user/-/state/com.google/read"}})
}

// syncs lets clients make a whole sync at once: the lists, the ids, contents, and a few marks.
func (r *reader) syncs(people int) {
	var clients sync.WaitGroup
	failed := make(chan error, people)
	for p := range people {
		clients.Go(func() {
			failed <- must.Run(func() {
				for _, path := range []string{"subscription/list?output=json", "tag/list?output=json"} {
					r.get(call + path)
				}
				r.get(unreadIDs + "1000")
				r.get(call + "stream/items/ids?output=json&s=user/-/state/com.google/starred&n=1000")
				at := p * 20 % (len(r.known) - 100)
				r.post(call+"stream/items/contents?output=json", url.Values{"T": {r.auth}, "i": r.known[at : at+50]})
				for k := range 3 {
					r.tag("a", r.known[at+k:at+k+1])
					r.tag("r", r.known[at+k:at+k+1])
				}
			})
		})
	}
	clients.Wait()
	for range people {
		must.Do(<-failed)
	}
}

// reachable lets the user of the database reach the files of a directory.
func reachable(dir string) {
	must.Do(os.Chmod(dir, 0o755))
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if fi, err := os.Stat(dir); err == nil && fi.Mode()&0o001 == 0 {
			must.Do(os.Chmod(dir, fi.Mode()|0o011))
		}
	}
}

// miniflux starts PostgreSQL and Miniflux with the feeds and entries of a lektor-dir.
func (w *way) miniflux(dir string) *reader {
	reachable(w.dir)
	data := filepath.Join(w.dir, "pg")
	must.Do(os.Mkdir(data, 0o700))
	as := func(cmd *exec.Cmd) *exec.Cmd {
		if os.Getuid() == 0 {
			u := must.Get(user.Lookup("postgres"))
			uid, gid := must.Get(strconv.Atoi(u.Uid)), must.Get(strconv.Atoi(u.Gid))
			must.Do(os.Chown(data, uid, gid))
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
			cmd.Dir = data
		}
		return cmd
	}
	run := func(cmd *exec.Cmd) {
		out, err := cmd.CombinedOutput()
		must.That(err, "%s\n%s", cmd, out)
	}
	run(as(command(w.dir, "initdb", "-D", data, "-A", "trust", "-U", "bench", "-E", "UTF8", "--locale=C")))
	addr := freePort()
	_, port, _ := strings.Cut(addr, ":")
	postgres := &program{Cmd: as(command(w.dir, "postgres", "-D", data, "-p", port, "-h", "127.0.0.1", "-k", data))}
	postgres.Stdout, postgres.Stderr = &postgres.said, &postgres.said
	must.Do(postgres.Start())
	psql := func(input string, args ...string) *exec.Cmd {
		cmd := command(w.dir, "psql", append([]string{"-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p",
			port, "-U", "bench", "postgres"}, args...)...)
		cmd.Stdin = strings.NewReader(input)
		return cmd
	}
	wait("postgres", time.Minute, postgres, func() bool { return psql("select 1").Run() == nil })
	r := &reader{w: w, dir: dir}
	listen := freePort()
	r.url = "http://" + listen
	r.program = &program{Cmd: command(w.dir, "miniflux")}
	r.Env = append(r.Env, "DATABASE_URL=postgres://bench@127.0.0.1:"+port+"/postgres?sslmode=disable",
		"RUN_MIGRATIONS=1", "CREATE_ADMIN=1",
		"ADMIN_USERNAME="+readerName, "ADMIN_PASSWORD="+readerPassword, "LISTEN_ADDR="+listen,
		"DISABLE_SCHEDULER_SERVICE=1")
	r.Stdout, r.Stderr = &r.said, &r.said
	must.Do(r.Start())
	wait("miniflux", time.Minute, r.program, func() bool {
		resp, err := http.Get(r.url + "/healthcheck")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	run(psql(fillMiniflux(dir)))
	run(psql("CREATE EXTENSION pgcrypto; UPDATE integrations SET googlereader_enabled='t', googlereader_username='" +
		readerName + "', googlereader_password=crypt('" + readerPassword + "', gen_salt('bf', 10)); UPDATE users SET entries_per_page=50; VACUUM ANALYZE;"))
	_, body := r.post("/accounts/ClientLogin", url.Values{"Email": {readerName}, "Passwd": {readerPassword}})
	_, auth, _ := strings.Cut(string(body), "Auth=")
	r.auth = strings.TrimSpace(auth)
	r.beside = postgres.Process.Pid
	r.end = func() { postgres.Process.Signal(syscall.SIGINT); postgres.Wait() }
	return r
}

// fillMiniflux returns the commands that add the feeds and entries of a lektor-dir to the database.
func fillMiniflux(dir string) string {
	d := must.Get(lektordir.Open(dir, nil))
	var sql bytes.Buffer
	rows := func(table, columns string, each func(add func(values ...string))) {
		fmt.Fprintf(&sql, "COPY %s (%s) FROM STDIN WITH CSV;\n", table, columns)
		w := csv.NewWriter(&sql)
		each(func(values ...string) { must.Do(w.Write(values)) })
		w.Flush()
		sql.WriteString("\\.\n")
	}
	rows("categories", "id, user_id, title", func(add func(...string)) {
		for k := range 20 {
			add(fmt.Sprint(1000+k), "1", fmt.Sprint("topic", k))
		}
	})
	feeds := must.Get(d.Feeds())
	number := map[string]string{}
	rows("feeds", "id, user_id, category_id, title, feed_url, site_url, next_check_at", func(add func(...string)) {
		for i, f := range feeds {
			topic := strings.TrimPrefix(strings.TrimSpace(string(must.Get(os.ReadFile(d.Join("src", f.Hash,
				"etc/categories"))))), "topic")
			number[f.Hash] = fmt.Sprint(i + 1)
			add(fmt.Sprint(i+1), "1", fmt.Sprint(1000+must.Get(strconv.Atoi(topic))), f.Name, f.ID, f.ID, "2100-01-01")
		}
	})
	refs := must.Get(d.List(context.Background(), lektordir.ListOptions{}))
	slices.SortFunc(refs, func(a, b lektordir.Ref) int { return cmp.Compare(a.Unique, b.Unique) })
	rows("entries", "user_id, feed_id, hash, published_at, created_at, changed_at, title, url, author, content",
		func(add func(...string)) {
			for i, ref := range refs {
				e := must.Get(d.ReadEntry(ref, lektordir.AllFields))
				date := e.PubDate.Format(time.RFC3339)
				add("1", number[ref.Feed], fmt.Sprint(i), date, date, date, e.Title, e.ID, e.Author, string(e.Content))
			}
		})
	return sql.String()
}
