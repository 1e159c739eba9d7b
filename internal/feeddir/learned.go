package feeddir

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/lektordir/lektor/internal/fetch"
)

// learned is what is known of the last document that was read: validators, the digest of
// its body, and what they belong to.
type learned struct {
	*area
	set *settings
	// Limits says under which limits documents are read. Validators and digest
	// of a document that was left short by them ([fetch.Response].Short) are good
	// only as long as they are the same: whoever raises a limit wants the rest.
	Limits string
}

// Document is where the last document came from that is known, or else where the feed
// is fetched from; without a password.
func (l *learned) Document() string { return fetch.Public(cmp.Or(l.get(fileFinal), l.set.URL())) }

// ReadBefore tells whether a document of the feed was ever read.
func (l *learned) ReadBefore() bool { return l.get(fileFrom) != "" }

// LastRead is when a document was read last that differed from the one before it, zero
// if none was.
func (l *learned) LastRead() time.Time { t, _ := l.time(fileBody); return t }

// SameBody tells whether the body of resp is the one last read, with the same
// filter: then it need not be parsed, and [State.Unchanged] is the event.
func (l *learned) SameBody(resp *fetch.Response) bool {
	return !resp.Truncated && l.get(fileBody) == resp.Digest() && l.current()
}

// current tells whether validators and digest are those of the present url and
// filter, which may have been changed by an editor, and of a document that was
// read whole or under the present limits.
func (l *learned) current() bool { return l.get(fileFrom) == l.from(l.set.URL(), false) || l.short() }

// from is what they belong to when they come from url, of a document that was read
// whole, or is left short by the present limits.
func (l *learned) from(url string, short bool) string {
	if f := l.set.Filter(); f != "" {
		url = fmt.Sprintf("%s\t%x", url, sha256.Sum256([]byte(f)))
	}
	if short {
		url += "\t" + l.Limits
	}
	return url
}

// short tells whether they are those of a document that was left short by the
// present limits.
func (l *learned) short() bool { return l.get(fileFrom) == l.from(l.set.URL(), true) }

// learn takes what an answer with a document says of it.
func (l *learned) learn(resp *fetch.Response) {
	var etag, modified, final, body, from string
	if !resp.Truncated {
		etag, modified, body, from = resp.ETag, resp.LastModified, resp.Digest(), l.from(l.set.URL(), resp.Short)
		final = finalURL(resp.FinalURL, l.set.URL())
	}
	l.put(fileETag, etag)
	l.put(fileModified, modified)
	l.put(fileFinal, final)
	l.put(fileBody, body)
	l.put(fileFrom, from)
}

// finalURL is what is kept of the URL that gave an answer: nothing when it is the
// one that was asked.
func finalURL(final, asked string) string {
	if u, err := fetch.ParseURL(asked); err == nil && fetch.IsHTTP(final) {
		if u.User = nil; u.String() != final {
			return final
		}
	}
	return ""
}

// move makes the document that of another URL: it stays known, and the validators are those
// of the URL that gave them, which mostly is the new one.
func (l *learned) move(asked, to *url.URL) {
	if !l.current() {
		return
	}
	final := l.get(fileFinal)
	if final == "" {
		from := *asked
		from.User = nil
		final = from.String()
	}
	l.put(fileFinal, finalURL(final, to.String()))
	l.put(fileFrom, l.from(to.String(), l.short()))
}

// disown removes what is known of the last document when what it belongs to is
// about to change: after a kill in the middle, the validators of one URL must not
// be found as those of another.
func (l *learned) disown() error {
	_, from := l.changed[fileFrom]
	_, final := l.changed[fileFinal]
	if !from && !final {
		return nil
	}
	for _, name := range []string{fileETag, fileModified, fileBody} {
		if !l.names[name] {
			continue
		}
		value := l.get(name)
		if err := remove(filepath.Join(l.dir, name)); err != nil {
			return err
		}
		l.stored(name, "")
		l.changed[name] = value
	}
	return nil
}

// save writes the digest before the validators, since a document that is not modified is
// not sent: they are saved only if all else was, of which sure is the part before.
func (l *learned) save(sure bool) error {
	err := l.area.save(fileFrom, fileFinal, fileBody)
	for _, name := range []string{fileETag, fileModified} {
		if l.get(name) == "" || sure && err == nil {
			err = errors.Join(err, l.area.save(name))
		}
	}
	return err
}
