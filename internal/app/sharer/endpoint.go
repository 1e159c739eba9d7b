package sharer

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/internal/text/feedurl"
)

// endpoint is this lektor-dir among those that share: its files in etc/share but the store, and the places
// of its own documents and of those of its peers.
type endpoint struct {
	*reader
	step   func()
	report *cmdline.Reporter

	me     string // name
	target string // directory or URL below which it publishes
	unlock func()
	web    *fetch.Client // of all requests, so that a server that asks for a pause gets it
}

// path returns the path of a file of etc/share.
func (e *endpoint) path(elem ...string) string {
	return e.d.Join(append([]string{shareDir}, elem...)...)
}

// setting returns the line of a file of one line, "" if the file does not exist.
func (e *endpoint) setting(name string) (string, error) {
	line, err := atomicfile.Optional(atomicfile.Line(e.path(name)))
	if fi, serr := os.Stat(e.path(name)); err != nil && serr == nil && !fi.Mode().IsRegular() {
		err = cmdline.Hint(err, "this must be a file of one line; move it away, and run: lektor-share init DIR|URL")
	}
	return line, err
}

// lock locks the set against other processes. It fails at once if another one holds the
// lock.
func (e *endpoint) lock() error {
	busy := cmdline.Hint(errors.New("another lektor-share is at work on this lektor-dir"),
		"nothing was done; try again when it has ended")
	var err error
	e.unlock, err = atomicfile.Lock(e.path(lockFile), busy)
	return err
}

// anotherTarget is the hint for a target that does not exist or is no directory.
const anotherTarget = "mount it, or choose another with: lektor-share init DIR"

// peer is another endpoint.
type peer struct {
	name  string
	place string // directory or URL of its documents
	named bool   // added by the user, not found in the target
}

// peers returns the peers to read: all directories in the target except our own, if the
// target is a directory, and the peers that the user added.
func (e *endpoint) peers() ([]peer, error) {
	out := []peer{}
	if e.target != "" && !isURL(e.target) {
		names, err := atomicfile.Optional(os.ReadDir(e.target))
		if errors.Is(err, syscall.ENOTDIR) {
			err = cmdline.Hint(err, anotherTarget)
		}
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			// Sync services have directories of their own here, with names that no endpoint
			// has. A directory without access may belong to a peer; reading it then reports
			// the error.
			if n.Name() == e.me || !peerName(n.Name()) {
				continue
			}
			place := filepath.Join(e.target, n.Name())
			if fi, err := os.Stat(place); err == nil && fi.IsDir() || err != nil && !errors.Is(err, fs.ErrNotExist) {
				out = append(out, peer{name: n.Name(), place: place})
			}
		}
	}
	names, err := atomicfile.Optional(os.ReadDir(e.path(peersDir)))
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if !peerName(n.Name()) {
			continue
		}
		place, err := atomicfile.Line(e.path(peersDir, n.Name()))
		if err != nil {
			return nil, err
		}
		if place != "" {
			out = slices.DeleteFunc(out, func(p peer) bool { return p.name == n.Name() })
			out = append(out, peer{name: n.Name(), place: place, named: true})
		}
	}
	return out, nil
}

// peerName reports whether a peer can have this name, which is also a file name.
func peerName(name string) bool {
	return feedsync.IsNSS(name) && name[0] != '.' && len(name) <= 200 && name != "*"
}

// record is the saved state of a peer's documents, etc/share/read/NAME, or of the target's.
type record struct{ *values.Values }

func (e *endpoint) record(name string) record {
	data, _ := atomicfile.Read(e.path(readDir, name), maxDocument)
	return record{values.Parse(data, ' ')}
}

// recordOf returns the record of the documents at a place. If the record is of another place, or anew is
// true, it has no documents.
func (e *endpoint) recordOf(name, place string, anew bool) record {
	old, id := e.record(name), digest([]byte(place))
	if !anew && old.Get("place") == id {
		return old
	}
	rec := record{values.New(' ')}
	rec.Set("place", id)
	rec.Set("success", old.Get("success"))
	rec.Set("wrote", old.Get("wrote"))
	return rec
}

// forget makes the next run read a document again.
func (r record) forget(name string) { r.validators(name, "", "") }

// validators sets the validators of a document, of which the first is the state of a file in a directory. If
// they are empty, the next request for it is unconditional.
func (r record) validators(name, etag, modified string) {
	r.Set(name+".etag", etag)
	r.Set(name+".modified", modified)
}

// pause records the pause for which a server asked in an error, and reports whether it did.
func (r record) pause(err error, now time.Time) bool {
	wait := httpmsg.Pause(err)
	if r.Set("after", ""); wait > 0 {
		r.Set("after", feedsync.FormatDate(now.Add(wait)))
	}
	return wait > 0
}

// home returns the directory or URL to which this endpoint publishes.
func (e *endpoint) home() string {
	if isURL(e.target) {
		return strings.TrimSuffix(e.target, "/") + "/" + e.me
	}
	return filepath.Join(e.target, e.me)
}

// isThere returns an error if a target is a missing directory.
func isThere(target string) error {
	if fi, err := os.Stat(target); !isURL(target) && (err != nil || !fi.IsDir()) {
		return cmdline.Hint(fmt.Errorf("the target %s is missing or not a directory; nothing is changed there", target),
			anotherTarget)
	}
	return nil
}

// published returns the record of the documents in the target.
func (e *endpoint) published() record { return e.recordOf("../"+publishedFile, e.home(), false) }

// password returns a hint where to put the password for the target's server.
func (e *endpoint) password() string {
	return fmt.Sprintf("write the header that the server requires, for example Authorization, into %s; or put user and password into the URL of lektor-share init", e.path(headersFile))
}

// isTarget reports whether the headers for the target are sent to a URL.
func (e *endpoint) isTarget(place string) bool {
	return isURL(e.target) && feedurl.SameOrigin(e.target, place)
}

// headers returns the headers of requests to the target.
func (e *endpoint) headers() (http.Header, error) {
	text, err := atomicfile.Optional(atomicfile.Read(e.path(headersFile), atomicfile.MaxLine))
	if err != nil {
		return nil, err
	}
	if fi, err := os.Stat(e.path(headersFile)); err == nil && fi.Mode().Perm()&0o077 != 0 {
		return nil, cmdline.Hint(fmt.Errorf("%s can be read by others", e.path(headersFile)), "chmod 600 %s",
			e.path(headersFile))
	}
	header, err := httpmsg.ParseHeaders(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.path(headersFile), err)
	}
	return http.Header(header), nil
}

// transportAt returns the transport for a directory or a URL.
func (e *endpoint) transportAt(place string) transport {
	if isURL(place) {
		return &server{e: e, url: strings.TrimSuffix(place, "/")}
	}
	return directory{path: place, step: e.step}
}

func (e *endpoint) addPeer(name, place string) (err error) {
	switch {
	case isURL(place):
		if feedurl.Public(place) != place {
			return cmdline.Hint(errors.New("a peer's URL must not contain a user and password"),
				"the headers of the target are sent to its server: %s", e.path(headersFile))
		}
	case strings.Contains(place, "://") || place == "":
		return cmdline.Usagef("peer add: %q is neither a directory nor an http or https URL", feedurl.Public(place))
	default:
		if place, err = filepath.Abs(place); err != nil {
			return err
		}
		// Links in a place that the user names are followed now, and no longer when it is read.
		if target, err := filepath.EvalSymlinks(place); err == nil {
			place = target
		}
	}
	return e.write([]byte(place+"\n"), peersDir, name)
}

// removePeer removes a peer that the user added. Its edits stay in the set.
func (e *endpoint) removePeer(name string) error {
	if !peerName(name) || !atomicfile.Exists(e.path(peersDir, name)) {
		return cmdline.Hint(fmt.Errorf("no peer %s was added", name),
			"lektor-share peer ls; to remove a peer in the target, remove its directory there")
	}
	return errors.Join(atomicfile.Remove(e.path(peersDir, name)), os.RemoveAll(e.path(readDir, name)))
}

// setHeaders writes the headers for a target. Those for another server are put aside, since they may have a
// password for that one.
func (e *endpoint) setHeaders(target, headers string) error {
	path := e.path(headersFile)
	if target != "" && isURL(e.target) && !feedurl.SameOrigin(e.target, target) && atomicfile.Exists(path) {
		if err := os.Rename(path, path+".old"); err != nil {
			return err
		}
		e.report.Info("the headers for %s are now in %s.old; those for another server belong into %[2]s",
			feedurl.Public(e.target), path)
	}
	if headers == "" {
		return nil
	}
	return e.write([]byte(headers), headersFile)
}

// targetOf returns a target in the form of its file, and the header for the password in its
// URL. It creates a target directory.
func (e *endpoint) targetOf(target string) (place, headers string, err error) {
	switch {
	case target == "":
		return "", "", nil
	case isURL(target):
		u, err := url.Parse(target)
		if err != nil {
			return "", "", err
		}
		if u.RawQuery != "" || u.Fragment != "" {
			return "", "", &cmdline.UsageError{Message: "init: the URL must not have a query or fragment",
				Hint: "put tokens into " + e.path(headersFile)}
		}
		if u.User == nil {
			return target, "", nil
		}
		// The password belongs into the file of headers, not into that of the target.
		password, _ := u.User.Password()
		return feedurl.Public(target), "Authorization: Basic " +
			base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)) + "\n", nil
	case strings.Contains(target, "://"):
		return "", "", &cmdline.UsageError{Message: "init: " + feedurl.Public(target) +
			" is neither a directory nor an http or https URL"}
	}
	if place, err = filepath.Abs(target); err != nil {
		return "", "", err
	}
	if strings.ContainsAny(place, "\n\r") {
		return "", "", &cmdline.UsageError{Message: "init: the name of the directory has a newline"}
	}
	return place, "", makeDir(place)
}

// sweep removes temporary files of killed runs. In a replicated directory, no other program
// would remove them on any machine.
func (e *endpoint) sweep() {
	sweepDir(e.path(), e.step)
	if e.target != "" && !isURL(e.target) {
		sweepDir(e.home(), e.step)
	}
}

// sweepDir removes the temporary files of killed runs from a directory.
func sweepDir(dir string, step func()) {
	if fi, err := os.Lstat(dir); err != nil || !fi.IsDir() {
		return
	}
	found, _ := os.ReadDir(dir)
	for _, f := range found {
		if atomicfile.Temporary(f.Name()) {
			step()
			_ = os.Remove(filepath.Join(dir, f.Name())) // the next run tries again
		}
	}
}

// write writes a file of etc/share with mode 0600, unless it has this content and mode already.
func (e *endpoint) write(data []byte, elem ...string) error {
	path := e.path(elem...)
	e.step()
	old, err := atomicfile.Read(path, int64(len(data))+1)
	if err == nil && string(old) == string(data) {
		if fi, err := os.Lstat(path); err == nil && fi.Mode() == 0o600 {
			return nil
		}
	}
	return atomicfile.InDir(path, func() error { return atomicfile.WritePrivate(path, data) })
}
