package schedule

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/text/feedurl"
)

// Document holds the validators of the last document, the digest of its body, and the URL,
// filter and limits for which they are valid.
type Document struct {
	values *feedfiles.Values
	set    *Settings
	// Limits is a text that names the limits for parsing. Validators and digest of a document that
	// exceeded them ([httpmsg.Response].Short) are valid only for the same limits: if the user raises a
	// limit, the document is read again.
	Limits string
}

// URL returns the URL of the last document after redirects, or the URL of the feed if that is not
// known, without a password.
func (l *Document) URL() string {
	return feedurl.Public(cmp.Or(l.values.Get(feedfiles.FileFinal), l.set.URL()))
}

// ReadBefore reports whether a document of the feed was ever parsed.
func (l *Document) ReadBefore() bool { return l.values.Get(feedfiles.FileFrom) != "" }

// LastRead returns the time at which a changed document was last parsed, or zero if there was none.
func (l *Document) LastRead() time.Time { t, _ := l.values.Time(fileBody); return t }

// SameBody reports whether resp has the body that was last parsed, and the filter is the same. If so, do
// not parse it, but call [State.Unchanged].
func (l *Document) SameBody(resp *httpmsg.Response) bool {
	return !resp.Truncated && l.values.Get(fileBody) == resp.Digest() && l.current()
}

// current reports whether validators and digest belong to the present url and filter, which the user may
// have changed, and to a document that was parsed in full or under the present limits.
func (l *Document) current() bool {
	return l.values.Get(feedfiles.FileFrom) == l.from(l.set.URL(), false) || l.short()
}

// from returns the value of FileFrom for a document from url. short reports whether the document exceeded
// the limits.
func (l *Document) from(url string, short bool) string {
	if f := l.set.Filter(); f != "" {
		url = fmt.Sprintf("%s\t%x", url, sha256.Sum256([]byte(f)))
	}
	if short {
		url += "\t" + l.Limits
	}
	return url
}

// short reports whether the last document exceeded the present limits.
func (l *Document) short() bool { return l.values.Get(feedfiles.FileFrom) == l.from(l.set.URL(), true) }

// record records validators and digest of a response with a document.
func (l *Document) record(resp *httpmsg.Response) {
	var etag, modified, final, body, from string
	if !resp.Truncated {
		etag, modified, body, from = resp.ETag, resp.LastModified, resp.Digest(), l.from(l.set.URL(), resp.Short)
		final = finalURL(resp.FinalURL, l.set.URL())
	}
	l.values.Put(fileETag, etag)
	l.values.Put(fileModified, modified)
	l.values.Put(feedfiles.FileFinal, final)
	l.values.Put(fileBody, body)
	l.values.Put(feedfiles.FileFrom, from)
}

// finalURL returns the value of FileFinal for the URL of a response: "" if it is the requested URL.
func finalURL(final, asked string) string {
	if u, err := feedurl.Parse(asked); err == nil && feedurl.IsHTTP(final) {
		if u.User = nil; u.String() != final {
			return final
		}
	}
	return ""
}

// removeDocument removes validators and digest from disk before their URL changes. Otherwise a kill could
// leave them with the new URL, to which they do not belong.
func (l *Document) removeDocument() (bad error) {
	_, from := l.values.Changed(feedfiles.FileFrom)
	_, final := l.values.Changed(feedfiles.FileFinal)
	for _, name := range []string{fileETag, fileModified, fileBody} {
		if value := l.values.Get(name); (from || final) && l.values.Has(name) {
			bad = errors.Join(bad, l.values.Drop(name))
			l.values.Put(name, value)
		}
	}
	return bad
}

// save writes the digest, and then the validators. With a validator, the server no longer sends an
// unchanged document, so save writes validators only if the digest was saved, and if sure reports that
// the caller has saved the rest of the state.
func (l *Document) save(sure bool) error {
	err := l.values.Save(feedfiles.FileFrom, feedfiles.FileFinal, fileBody)
	for _, name := range []string{fileETag, fileModified} {
		if l.values.Get(name) == "" || sure && err == nil {
			err = errors.Join(err, l.values.Save(name))
		}
	}
	return err
}
