// Package fulltext is what there is to know of the article of a page: how it is had from
// the page, by lektor-article(1), and whether it may stand in the place of what a feed
// has.
package fulltext

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/termsafe"
)

// Program finds the article of a page. It is a program of its own since the library for
// it would cost each start of a fetcher more than all else, and since what strangers
// write, nested a million deep, must not end the fetcher.
const Program = "lektor-article"

// Article is what a page has, as [Program] prints it with --json.
type Article struct {
	Title   string `json:"title,omitempty"`
	Content string `json:"content,omitempty"` // HTML with absolute URLs; "" where there is none
	Refresh string `json:"refresh,omitempty"` // the URL to which the page sends a browser at once
}

// Limits of a run of [Program].
const (
	maxTime    = 30 * time.Second
	maxArticle = 16 << 20 // bytes of its output
)

// MissingError tells that there is no [Program]: it is not the page's fault.
type MissingError struct{ Err error }

func (e *MissingError) Error() string {
	return fmt.Sprintf("full text needs %s: %v; install it beside lektor-fetch", Program, e.Err)
}

func (e *MissingError) Unwrap() error { return e.Err }

// Installed is nil where [Program] is found, else a [MissingError].
func Installed() error {
	if _, err := command.Program(Program); err != nil {
		return &MissingError{err}
	}
	return nil
}

// Extract has [Program] find the article of a page that was found at url, with that
// Content-Type. The error is a [MissingError], the context's, or says what is wrong
// with the page.
func Extract(ctx context.Context, page []byte, url, contentType string) (*Article, error) {
	path, err := command.Program(Program)
	if err != nil {
		return nil, &MissingError{err}
	}
	parent := ctx
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, fmt.Errorf("not within %s", maxTime))
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--json", "--url="+url, "--content-type="+contentType)
	out := head{most: maxArticle, over: func() { stop(errTooLong) }}
	said := head{most: 4 << 10, over: func() {}}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(page), &out, &said
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	switch {
	case parent.Err() != nil:
		return nil, context.Cause(parent)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("its article was not found: %w", context.Cause(ctx))
	case err != nil && errors.As(err, new(*exec.ExitError)):
		why := termsafe.Brief(strings.TrimSpace(strings.TrimPrefix(said.b.String(), Program+": ")))
		return nil, fmt.Errorf("its article was not found: %v: %s", err, why)
	case err != nil:
		return nil, &MissingError{err}
	}
	a := &Article{}
	if err := json.Unmarshal(out.b.Bytes(), a); err != nil {
		return nil, fmt.Errorf("its article was not found: %v", err)
	}
	return a, nil
}

var errTooLong = errors.New("it would be too long")

// head keeps the first bytes of what is written, and tells of more.
type head struct {
	b    bytes.Buffer // not embedded: what copies into it would use its ReadFrom
	most int
	over func()
}

func (h *head) Write(p []byte) (int, error) {
	if left := h.most - h.b.Len(); len(p) > left {
		h.b.Write(p[:left])
		h.over()
	} else {
		h.b.Write(p)
	}
	return len(p), nil
}

// Own is what a feed has of an entry.
type Own struct {
	Title, Content, Type, Summary string
}

// text is the text of the entry without white space, which is no matter.
func (o Own) text() string {
	return fold(feedconv.PlainText(o.Content, o.Type))
}

// Judge tells why an article may not stand in the place of what the feed has, "" if it
// may. A page that a program in the browser fills has none, or a word of excuse; a page
// of consent or of payment has one, which is not the entry's.
func Judge(a *Article, own Own) string {
	text, had := fold(feedconv.PlainText(a.Content, "text/html")), own.text()
	switch {
	case text == "":
		return "the page has no article"
	case utf8.RuneCountInString(text) <= utf8.RuneCountInString(had):
		return "the article of the page is no longer than what the feed has"
	case !related(text, own.Title+" "+had+" "+own.Summary):
		return "the article of the page is about something else"
	}
	return ""
}

func fold(s string) string { return strings.Join(strings.Fields(s), " ") }

const (
	stemRunes   = 5    // words are the same that begin so; shorter ones are in every text
	fewStems    = 8    // of so few nothing can be told
	mostOfOwn   = 4000 // bytes of what the feed has that are looked at
	leastShared = 0.3
)

// related tells whether a text has enough of the words of another in it to be about the
// same thing. What a feed has of an entry is mostly its beginning, or says in the
// words of the article what it is about. Where no spaces are written between words, or
// too few words are there, it is taken to be.
func related(text, own string) bool {
	if len(own) > mostOfOwn {
		own = own[:mostOfOwn]
	}
	want, ok := stems(own)
	if !ok || len(want) < fewStems {
		return true
	}
	have, _ := stems(text)
	n := 0
	for s := range want {
		if have[s] {
			n++
		}
	}
	return float64(n) >= leastShared*float64(len(want))
}

// unspaced are scripts that have no spaces between words.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan}

// stems gives the beginnings of the longer words of a text; ok is false for one in an
// unspaced script.
func stems(text string) (found map[string]bool, ok bool) {
	found = map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.Is(unicode.Mn, r) }) {
		runes := []rune(w)
		if unicode.In(runes[0], unspaced...) {
			return found, false
		}
		if len(runes) >= stemRunes {
			found[string(runes[:stemRunes])] = true
		}
	}
	return found, true
}
