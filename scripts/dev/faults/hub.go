//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// A hub must have the state behind its answer on the disk when it answers. So the power is cut
// when it writes the first byte of an answer, or of a notification, to the socket. Another hub
// that is started with this state of the disk must keep the promises of the first one.

// hubUser is the line of the user bull with the password secret.
const hubUser = "bull:$2a$04$6pXfRRhBEqxtahKzfgT8x.S.YY2PXnDxYAsl0BAoyjNHNXfpFXVp6\n"

const savedFeed = `<rss version="2.0"><channel><title>Saved</title></channel></rss>`

// hubs starts hubs, and serves a feed and its subscribers.
type hubs struct {
	work, program string
	site          *httptest.Server
	port          string // port of the site

	mu            sync.Mutex
	version       int
	notifiedPaths []string      // paths of notified subscribers
	hold          chan struct{} // closed when the feed may be read; nil means now
}

func newHubs(work string) *hubs {
	h := &hubs{work: work, program: filepath.Join(work, "lektor-cloudd")}
	must.Do(testdir.Programs(work, "lektor-cloudd"))
	must.Do(os.WriteFile(filepath.Join(work, "users"), []byte(hubUser), 0o600))
	h.site = httptest.NewServer(h)
	_, h.port, _ = net.SplitHostPort(h.site.Listener.Addr().String())
	return h
}

// ServeHTTP serves the feed and the callbacks of its subscribers.
func (h *hubs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	hold := h.hold
	h.mu.Unlock()
	if hold != nil && r.URL.Path == "/feed" {
		<-hold
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case r.URL.Path == "/feed":
		fmt.Fprintf(w, "version %d", h.version)
	case r.Method == http.MethodGet:
		_, _ = io.WriteString(w, r.FormValue("challenge"))
	default:
		h.notifiedPaths = append(h.notifiedPaths, r.URL.Path)
		_, _ = io.WriteString(w,
			`<?xml version="1.0"?><methodResponse><params><param><value><boolean>1</boolean></value></param></params></methodResponse>`)
	}
}

func (h *hubs) feed() string { return h.site.URL + "/feed" }

// holdFeed delays requests for the feed until release is called.
func (h *hubs) holdFeed() (release func()) {
	hold := make(chan struct{})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hold = hold
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.hold = nil
		close(hold)
	}
}

// publish writes the next version of the feed. No hub is notified yet.
func (h *hubs) publish() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version++
	h.notifiedPaths = nil
}

// notified returns an error unless a subscriber is notified within a time.
func (h *hubs) notified(path string, within time.Duration) error {
	for end := time.Now().Add(within); ; {
		h.mu.Lock()
		found := slices.Contains(h.notifiedPaths, path)
		h.mu.Unlock()
		if found {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s is not notified", path)
		}
		poll := time.NewTimer(5 * time.Millisecond)
		<-poll.C
	}
}

// argv returns the command line of a hub with a state, and its base URL.
func (h *hubs) argv(state, gap string) (argv []string, base string) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
	addr := l.Addr().String()
	must.Do(l.Close())
	return []string{h.program, "hub", "--listen", addr, "--public-url", "http://" + addr, "--state", state,
		"--htpasswd", filepath.Join(h.work, "users"),
		"--allow-feeds", "127.0.0.0/8", "--allow-callbacks", "127.0.0.0/8", "--ping-gap", gap}, "http://" + addr
}

// answers waits until a server answers at a URL.
func answers(ctx context.Context, base string) {
	for end := time.Now().Add(30 * time.Second); ; {
		if resp, err := http.Get(base); err == nil {
			resp.Body.Close()
			return
		}
		must.Do(ctx.Err())
		if time.Now().After(end) {
			must.Fail("the hub does not answer")
		}
		poll := time.NewTimer(5 * time.Millisecond)
		<-poll.C
	}
}

// started starts a hub with a state, and calls do with its URL.
func (h *hubs) started(ctx context.Context, state string, do func(base string) error) (err error) {
	defer must.Catch(&err)
	argv, base := h.argv(state, "1ms")
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	must.Do(cmd.Start())
	defer func() {
		cancel()
		_ = cmd.Wait() // it is killed
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, stderr.String())
		}
	}()
	answers(ctx, base)
	return do(base)
}

func post(where, kind, body string) string {
	resp := must.Get(http.Post(where, kind, strings.NewReader(body)))
	defer resp.Body.Close()
	return string(must.Get(io.ReadAll(resp.Body)))
}

func form(where string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return post(where, "application/x-www-form-urlencoded", q.Encode())
}

// rpc makes a call by XML-RPC. The parameters are XML.
func rpc(base, method string, params ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0"?><methodCall><methodName>%s</methodName><params>`, method)
	for _, p := range params {
		fmt.Fprintf(&b, "<param><value>%s</value></param>", p)
	}
	b.WriteString("</params></methodCall>")
	return post(base+"/RPC2", "text/xml", b.String())
}

// A promise is an answer or an action of a hub, for which a state must be on the disk.
type promise struct {
	name string
	gap  string // --ping-gap of the hub; hubs with the same gap are one process
	ask  func(base string) string
	want string // text that the answer must contain
	// send is the beginning of the data that is written to the socket at that moment.
	send string
	// verify returns an error if a hub that starts with the state of the disk breaks the promise.
	verify func(base string) error
	// calls is the number of calls before the moment; -1 if the moment did not come.
	calls int
}

func (h *hubs) ping(base string) string { return form(base+"/ping", "url", h.feed()) }

// subscribed returns a function that checks that a subscriber with a path is notified.
func (h *hubs) subscribed(path string) func(base string) error {
	return func(base string) error {
		h.publish()
		answer := h.ping(base)
		if err := h.notified(path, 0); err != nil {
			return fmt.Errorf("%w: %s", err, answer)
		}
		return nil
	}
}

func (h *hubs) promises() []*promise {
	notifies := func(paths ...string) func(string) error {
		return func(string) (err error) {
			for _, path := range paths {
				err = errors.Join(err, h.notified(path, 10*time.Second))
			}
			return err
		}
	}
	const long = "3h"
	return []*promise{
		{name: "a registration by REST", gap: "0", send: "HTTP/1.1 200", want: `success="true"`,
			verify: h.subscribed("/rest"), ask: func(base string) string {
				return form(base+"/pleaseNotify", "port", h.port, "path", "/rest", "protocol", "http-post", "domain",
					"127.0.0.1", "url1", h.feed())
			}},
		{name: "a registration by XML-RPC", gap: "0", send: "HTTP/1.1 200", want: "<boolean>1<",
			verify: h.subscribed("/rpc"), ask: func(base string) string {
				return rpc(base, "rssCloud.pleaseNotify", "x", "<i4>"+h.port+"</i4>", "/rpc", "xml-rpc",
					"<array><data><value>"+h.feed()+"</value></data></array>")
			}},
		{name: "a feed that is stored", gap: "0", send: "HTTP/1.1 200", want: "/feeds/bull/rss.xml",
			ask: func(base string) string {
				return rpc(base, "rssCloud.saveRss", "bull", "secret", "<![CDATA["+savedFeed+"]]>")
			}, verify: func(base string) (err error) {
				defer must.Catch(&err)
				resp := must.Get(http.Get(base + "/feeds/bull/rss.xml"))
				defer resp.Body.Close()
				if got := must.Get(io.ReadAll(resp.Body)); string(got) != savedFeed+"\n" {
					must.Fail("the feed is %q", got)
				}
				return nil
			}},
		{name: "a round, when its first subscriber is notified", gap: "0", send: "POST /r", want: "2 subscribers",
			verify: notifies("/rest", "/rpc"), ask: func(base string) string {
				h.publish()
				return h.ping(base)
			}},
		{name: "a publish by WebSub", gap: "0", send: "HTTP/1.1 204", verify: notifies("/rest", "/rpc"),
			ask: func(base string) string {
				h.publish()
				defer h.holdFeed()() // so that the answer comes before the feed is read
				return form(base+"/websub", "hub.mode", "publish", "hub.url", h.feed())
			}},
		// The wait is longer than a gap of 0 permits, so the next hub starts the job at once.
		{name: "a ping that waits for its time", gap: long, send: "HTTP/1.1 200", want: "it is read again in",
			verify: notifies("/rest", "/rpc"), ask: func(base string) string {
				h.ping(base) // the first ping does not wait
				h.publish()
				return h.ping(base)
			}},
	}
}

// record runs hubs through the promises, and records their changes of the state.
func (h *hubs) record(ctx context.Context, all []*promise) (r *recording, err error) {
	defer must.Catch(&err)
	state := filepath.Join(h.work, "state")
	defer os.RemoveAll(state)
	must.Do(os.Mkdir(state, 0o700))
	r = newRecording(state)
	for gap := range slices.Values([]string{"0", "3h"}) {
		same := slices.DeleteFunc(slices.Clone(all), func(p *promise) bool { return p.gap != gap })
		ops := must.Get(h.recordRun(ctx, state, gap, r.calls, same))
		for _, o := range ops {
			r.add(o)
		}
	}
	return r, nil
}

// recordRun runs one hub. before is the number of calls by earlier hubs.
func (h *hubs) recordRun(ctx context.Context, state, gap string, before int, all []*promise) (ops []op, err error) {
	defer must.Catch(&err)
	argv, base := h.argv(state, gap)
	var mu sync.Mutex
	var now *promise // the promise that is being tested
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	v := supervision{dir: state, sends: true, decide: func(n int, o op) verdict {
		if o.Kind != "send" {
			return syncsSkipped(o)
		}
		mu.Lock()
		defer mu.Unlock()
		if now != nil && strings.HasPrefix(string(o.Data), now.send) {
			// The last moment counts, since a ping that does not wait precedes one that waits.
			if now.calls < 0 || now.send != "POST /r" {
				now.calls = before + n
			}
		}
		return verdict{}
	}}
	asked := make(chan error, 1)
	go func() {
		defer stop()
		asked <- must.Run(func() {
			answers(ctx, base)
			for _, p := range all {
				p.calls = -1
				mu.Lock()
				now = p
				mu.Unlock()
				if got := p.ask(base); !strings.Contains(got, p.want) {
					must.Fail("%s: %s", p.name, got)
				}
				mu.Lock()
				now = nil
				mu.Unlock()
				if p.calls < 0 {
					must.Fail("%s: nothing was sent", p.name)
				}
			}
		})
	}()
	o, err := v.run(ctx, argv...)
	if aerr := <-asked; aerr != nil {
		return nil, errors.Join(aerr, err)
	}
	if o == nil {
		return nil, err
	}
	return o.ops, nil // it is killed
}

// broken tests the states of a disk at the moment of each promise, and returns an error for each
// broken promise.
func (h *hubs) broken(ctx context.Context, r *recording, all []*promise, m model) (tried int, findings []error) {
	for _, p := range all {
		names, others := r.loose(p.calls, m)
		c := cut{names, others}
		seen := map[[sha256.Size]byte]bool{}
		for _, survive := range []int{0, len(names)} {
			for _, f := range []fate{{lost: true}, {zeros: true}, {}} {
				s := r.build(p.calls, c.fates(survive, func(i int) fate {
					if f.zeros && r.changes[i].kind != written {
						return fate{}
					}
					return f
				}))
				sum := s.volume.sum()
				if seen[sum] {
					continue
				}
				seen[sum] = true
				tried++
				if err := h.keeps(ctx, p, s); err != nil {
					findings = append(findings, fmt.Errorf("%s: %s:\n%w", p.name, r.describe(s), err))
				}
			}
		}
	}
	return tried, findings
}

// tryHub tests all promises, and prints the result.
func tryHub(ctx context.Context, work string, m model) (well, bad int) {
	h := newHubs(work)
	defer h.site.Close()
	all := h.promises()
	start := time.Now()
	tried, findings := h.broken(ctx, must.Get(h.record(ctx, all)), all, m)
	must.Do(ctx.Err())
	fmt.Printf("%-48s %5d well, %d badly, %.0f s\n", "hub, what it answers for", tried-len(findings), len(findings),
		time.Since(start).Seconds())
	printFindings(findings)
	return tried - len(findings), len(findings)
}

// keeps tests whether a hub that is started with the state of a disk keeps a promise.
func (h *hubs) keeps(ctx context.Context, p *promise, s *diskState) (err error) {
	defer must.Catch(&err)
	state := filepath.Join(h.work, "restarted")
	defer os.RemoveAll(state)
	s.volume.write(state)
	h.mu.Lock()
	h.notifiedPaths = nil
	h.mu.Unlock()
	return h.started(ctx, state, p.verify)
}
