//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// lektor-serve changes a lektor-dir for clients. So a client makes its edits while calls of
// the server fail, or it is killed: an edit that was answered with OK is there, another one
// was refused with a message, and a server that is started then does all of them.

// served is a lektor-serve with a client.
type served struct {
	*trial
	program, state, dir string
	token               string
	edits               []clientEdit
	whole               map[string]string // files of each entry, by feed and unique name
	final               map[string]string // state after all edits
}

// clientEdit is a request that changes the lektor-dir.
type clientEdit struct {
	name, target string
	form         url.Values
	gone         bool // a second time it may be refused, since it is done
	// done returns an error if the lektor-dir does not show the edit.
	done func(dir string) error
}

const (
	clientName     = "faults"
	clientPassword = "a password of the faults"
)

// newServed prepares a lektor-dir, a user and a token.
func newServed(ctx context.Context, e *env) (s *served, err error) {
	defer must.Catch(&err)
	s = &served{
		trial: &trial{e: e, s: scenario{name: "serve", feeds: 3, viewer: true},
			template: filepath.Join(e.work, "template serve")},
		program: filepath.Join(e.work, "lektor-serve"), state: filepath.Join(e.work, "users of serve"),
		dir: filepath.Join(e.place, "served"),
	}
	e.prepare(ctx, s.s, s.template)
	s.fresh()
	s.whole = map[string]string{}
	for _, x := range read(s.dir) {
		s.whole[x.Feed+" "+x.Unique] = fmt.Sprint(x.Files)
	}
	must.Do(e.run(ctx, s.dir, clientPassword+"\n", s.program, "passwd", "--state", s.state, "--dir", s.dir, clientName))
	must.Do(s.started(ctx, s.login))
	for _, reads := range []bool{true, false} {
		s.fresh()
		o, answers, err := s.run(ctx, fault{n: -1, reads: reads})
		must.Do(err)
		must.That(errors.Join(answers...), "without a fault")
		for _, edit := range s.edits {
			must.That(edit.done(s.dir), "without a fault: %s", edit.name)
		}
		if reads {
			s.reads = o.ops
		} else {
			s.ops = o.ops
		}
	}
	s.final = s.settings()
	return s, nil
}

// settings is the state of the lektor-dir without due markers, which a kill may spare a feed that
// is fetched all the same, and the files that an interrupted end of a subscription leaves.
func (s *served) settings() map[string]string {
	all := state(s.dir)
	maps.DeleteFunc(all, func(name, _ string) bool {
		return strings.HasPrefix(name, "etc/fetch/due/") ||
			strings.HasPrefix(name, "src/"+feedHash(s.e.url(2))+"/etc/fetch/")
	})
	if left := "src/" + feedHash(s.e.url(2)) + "/etc/view/left"; all[left] != "" {
		all[left] = "" // the next subscription removes the rest
	}
	return all
}

// fresh puts the lektor-dir in its place anew.
func (s *served) fresh() {
	must.Do(os.RemoveAll(s.dir))
	copyTree(s.template, s.dir)
}

// argv is the command line of a server, and base its URL.
func (s *served) argv() (argv []string, base string) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	addr := l.Addr().String()
	must.Do(l.Close())
	return []string{s.program, "--listen", addr, "--state", s.state, "--allow", "127.0.0.0/8"}, "http://" + addr
}

// login gets a token and the ids of all entries, and makes the edits of them.
func (s *served) login(base string) (err error) {
	defer must.Catch(&err)
	body := must.Get(s.post(base+"/accounts/ClientLogin",
		url.Values{"Email": {clientName}, "Passwd": {clientPassword}}))
	_, token, ok := strings.Cut(body, "Auth=")
	if !ok {
		must.Fail("the log-in is answered with %q", body)
	}
	s.token = strings.TrimSpace(token)
	req := must.Get(http.NewRequest(http.MethodGet,
		base+"/reader/api/0/stream/items/ids?n=1000&s=user/-/state/com.google/reading-list", nil))
	req.Header.Set("Authorization", "GoogleLogin auth="+s.token)
	resp := must.Get(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	var ids struct{ ItemRefs []struct{ ID string } }
	must.Do(json.NewDecoder(resp.Body).Decode(&ids))
	mark := url.Values{"a": {"user/-/state/com.google/read", "user/-/state/com.google/starred"}}
	star := url.Values{"do": {"star"}}
	for _, ref := range ids.ItemRefs {
		mark.Add("i", ref.ID)
		star.Add("e", strconv.FormatUint(must.Get(strconv.ParseUint(ref.ID, 10, 64)), 36))
	}
	if len(ids.ItemRefs) != len(s.whole) {
		must.Fail("%d ids of %d entries", len(ids.ItemRefs), len(s.whole))
	}
	s.edits = s.editsOf(star, mark)
	return nil
}

func (s *served) editsOf(star, mark url.Values) []clientEdit {
	hash := func(i int) string { return feedHash(s.e.url(i)) }
	line := func(feed int, file, want string) func(dir string) error {
		return func(dir string) error {
			b, err := os.ReadFile(filepath.Join(dir, "src", hash(feed), file))
			if err == nil && string(b) != want+"\n" {
				err = fmt.Errorf("%s of feed %d is %q, want %q", file, feed, b, want)
			}
			return err
		}
	}
	const subscription = "/reader/api/0/subscription/edit"
	return []clientEdit{
		{name: "star on the page", target: "/mark", form: star, done: func(dir string) (err error) {
			for _, x := range read(dir) {
				if x.Place != "cur" || !strings.Contains(x.Flags, "F") {
					err = errors.Join(err, fmt.Errorf("not starred: %s", x))
				}
			}
			return err
		}},
		{name: "mark", target: "/reader/api/0/edit-tag", form: mark, done: func(dir string) (err error) {
			for _, x := range read(dir) {
				if x.Place != "cur" || x.Flags != "2,FS" {
					err = errors.Join(err, fmt.Errorf("not marked: %s", x))
				}
			}
			return err
		}},
		{name: "subscribe", target: subscription, form: url.Values{"ac": {"subscribe"}, "s": {"feed/" + s.e.url(4)},
			"a": {"user/-/label/Folder"}}, done: func(dir string) error {
			return errors.Join(line(4, "etc/fetch/url", s.e.url(4))(dir), line(4, "etc/categories", "Folder")(dir))
		}},
		{name: "edit", target: subscription, form: url.Values{"ac": {"edit"}, "s": {"feed/" + hash(0)},
			"t": {"A title"}, "a": {"user/-/label/Other"}}, done: func(dir string) error {
			return errors.Join(line(0, "etc/view/alias", "A title")(dir), line(0, "etc/categories", "Other")(dir))
		}},
		{name: "unsubscribe", target: subscription, form: url.Values{"ac": {"unsubscribe"}, "s": {"feed/" + hash(2)}},
			gone: true, done: func(dir string) error {
				if _, err := os.Lstat(filepath.Join(dir, "src", hash(2), "etc/fetch/url")); err == nil {
					return errors.New("the feed is still subscribed to")
				}
				return nil
			}},
	}
}

// refused is an answer other than 200.
type refused struct {
	status int
	text   string
}

func (r *refused) Error() string { return fmt.Sprintf("status %d: %s", r.status, r.text) }

// post posts a form, and returns the answer's text.
func (s *served) post(where string, form url.Values) (text string, err error) {
	defer must.Catch(&err)
	req := must.Get(http.NewRequest(http.MethodPost, where, strings.NewReader(form.Encode())))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if s.token != "" {
		req.Header.Set("Authorization", "GoogleLogin auth="+s.token)
		req.Header.Set("Accept", "text/x-message")
		req.AddCookie(&http.Cookie{Name: "lektor", Value: s.token})
	}
	resp := must.Get(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	text = string(must.Get(io.ReadAll(resp.Body)))
	if resp.StatusCode != http.StatusOK {
		return "", &refused{resp.StatusCode, text}
	}
	return text, nil
}

// makeEdits makes the edits until one is not answered with OK, as a client with a queue does,
// and returns for each of them why it was not.
func (s *served) makeEdits(base string) (answers []error) {
	for _, e := range s.edits {
		text, err := s.post(base+e.target, e.form)
		if err == nil && text != "OK" && !strings.HasPrefix(text, "<form") {
			err = fmt.Errorf("the answer is %q", text)
		}
		if answers = append(answers, err); err != nil && !e.gone {
			break
		}
	}
	return answers
}

// started runs do with the URL of a server without faults.
func (s *served) started(ctx context.Context, do func(base string) error) (err error) {
	defer must.Catch(&err)
	argv, base := s.argv()
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	must.Do(cmd.Start())
	defer func() {
		cancel()
		_ = cmd.Wait() // it was killed
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, stderr.String())
		}
	}()
	answers(ctx, base)
	return do(base)
}

// run lets a fault strike the server while a client makes its edits. The answers are nil if
// the server ended before it answered at all.
func (s *served) run(ctx context.Context, f fault) (hit struck, said []error, err error) {
	argv, base := s.argv()
	inner, stop := context.WithCancel(ctx)
	defer stop()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		defer stop()
		_ = must.Run(func() { // the server may end before it listens
			answers(inner, base)
			said = s.makeEdits(base)
		})
	}()
	hit, err = s.strike(inner, s.dir, f, argv)
	stop()
	<-asked
	if err != nil && ctx.Err() == nil && (errors.Is(err, context.Canceled) || errors.Is(err, errPassed)) {
		err = nil
		if hit.hit.Kind == "" && f.n > 0 {
			err = errPassed
		}
	}
	return hit, said, err
}

// try lets a fault strike, and checks the result.
func (s *served) try(ctx context.Context, f fault) (hit op, err error) {
	defer must.Catch(&err)
	s.fresh()
	struck, said, err := s.run(ctx, f)
	if err != nil {
		return struck.hit, err
	}
	bad := []error{s.answered(f, struck, said), s.entriesWhole()}
	bad = append(bad, s.started(ctx, s.again), s.entriesWhole(), differState(s.settings(), s.final),
		s.consistent(ctx, s.dir))
	if err := errors.Join(bad...); err != nil {
		return struck.hit, fmt.Errorf("serve: %v, %s:\n%w\nanswers %q, stderr: %s", f, struck.hit, err, said,
			struck.stderr)
	}
	return struck.hit, nil
}

// answered looks whether each edit that was answered with OK is there, and whether the others
// were refused with a reason.
func (s *served) answered(f fault, o struck, said []error) (err error) {
	if strings.Contains(o.stderr, "goroutine ") {
		return errors.New("it panicked")
	}
	if said == nil && !f.kill && o.status != 1 {
		return errors.New("it does not answer at all")
	}
	for n, answer := range said {
		e, no := s.edits[n], (*refused)(nil)
		switch {
		case answer == nil:
			if bad := e.done(s.dir); bad != nil {
				err = errors.Join(err, fmt.Errorf("%s was answered with OK: %w", e.name, bad))
			}
		case !errors.As(answer, &no):
			if !f.kill {
				err = errors.Join(err, fmt.Errorf("%s has no answer: %w", e.name, answer))
			}
		case f.errno != 0 && (no.status < 500 || !strings.Contains(o.stderr, f.errno.Error())):
			err = errors.Join(err,
				fmt.Errorf("%s: %w; want a status from 500 on, and the words %q in what the server says", e.name, no,
					f.errno.Error()))
		}
	}
	return err
}

// again makes all edits, which must go well.
func (s *served) again(base string) (err error) {
	said := s.makeEdits(base)
	if len(said) < len(s.edits) {
		return fmt.Errorf("again: %w", errors.Join(said...))
	}
	for n, answer := range said {
		e := s.edits[n]
		if answer != nil && !(e.gone && e.done(s.dir) == nil) {
			err = errors.Join(err, fmt.Errorf("again, %s: %w", e.name, answer))
		}
		if bad := e.done(s.dir); bad != nil {
			err = errors.Join(err, fmt.Errorf("again, %s: %w", e.name, bad))
		}
	}
	return err
}

// entriesWhole returns an error if an entry is not there once, with its files.
func (s *served) entriesWhole() (err error) {
	left := maps.Clone(s.whole)
	for _, x := range must.Get(testdir.Entries(s.dir)) {
		key := x.Feed + " " + x.Unique
		if files, ok := left[key]; !ok || files != fmt.Sprint(x.Files) {
			err = errors.Join(err, fmt.Errorf("there twice, or changed: %s/%s", x.Place, key))
		}
		delete(left, key)
	}
	for key := range left {
		err = errors.Join(err, fmt.Errorf("missing: %s", key))
	}
	return err
}

// all tries faults one after the other, and begins none after until, if that is not zero.
func (s *served) all(ctx context.Context, faults []fault, until time.Time) *tally {
	r := &tally{kinds: map[string]int{}}
	for _, f := range faults {
		if ctx.Err() != nil || !until.IsZero() && time.Now().After(until) && r.some() {
			break
		}
		hit, err := s.try(ctx, f)
		if err == nil {
			r.kinds[hit.Kind]++
		} else if !errors.Is(err, errPassed) {
			r.errors = append(r.errors, err)
		}
	}
	return r
}

// tryServe tries the faults of all kinds, and prints what became of them.
func tryServe(ctx context.Context, e *env, c choice) (well, bad int) {
	s := must.Get(newServed(ctx, e))
	for kind := range strings.SplitSeq(c.kinds, ",") {
		var some []fault
		for each := range slices.Chunk(faultKinds[kind](s.trial), c.step) {
			some = append(some, each[0])
		}
		start := time.Now()
		r := s.all(ctx, some, time.Time{})
		n := 0
		for _, k := range r.kinds {
			n += k
		}
		fmt.Printf("%-14s %-5s %5d well, %d badly, %.0f s\n", "serve", kind, n, len(r.errors),
			time.Since(start).Seconds())
		printFindings(r.errors)
		must.Do(ctx.Err())
		well, bad = well+n, bad+len(r.errors)
	}
	return well, bad
}
