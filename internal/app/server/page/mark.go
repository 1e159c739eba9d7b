package page

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/app/server"
	"github.com/lektordir/lektor/internal/protocol/greader"
	"github.com/lektordir/lektor/internal/read/undo"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// said is the message after a change.
type said struct {
	Text string
	Undo string // the part of the journal that takes it back; "" for none
	Back string // the page to which undo leads
	// Unread is how many entries are unread now, for a script that does not load the page; "" if that is the same.
	Unread string
}

// saidCookie is the name of the cookie with the message for the next page.
const saidCookie = "lektor-said"

// texts are the messages about changes of several entries, by what was done.
var texts = map[string]string{"read": "Marked %s as read.", "unread": "Marked %s as unread.", "star": "Starred %s.",
	"unstar": "Removed the star of %s."}

// say leads back to a page with a message about a change, or answers a script with the message alone.
func (c *visit) say(what string, done server.Done) error {
	value := what + "." + strconv.Itoa(done.Count)
	if done.Count > 0 && done.Span != (undo.Span{}) {
		value += fmt.Sprintf(".%d.%d.%d", done.Number, done.From, done.To)
	}
	back := local(c.form.Get("back"))
	if !c.wantsMessage() {
		c.setCookie(saidCookie, value, time.Minute)
		c.leave(back)
		return nil
	}
	m := parseSaid(value)
	m.Back = back
	if sign := map[string]int{"read": -1, "unread": 1}[what]; sign != 0 {
		m.Unread = strconv.Itoa(c.unreadOfAll() + sign*done.Count)
	}
	var b bytes.Buffer
	if err := templates().ExecuteTemplate(&b, "said", m); err != nil {
		return err
	}
	c.send(http.StatusOK, "text/html; charset=utf-8", b.Bytes())
	return nil
}

// wantsMessage reports whether a script made a request, which takes only the message.
func (c *visit) wantsMessage() bool { return c.r.Header.Get("Accept") == "text/x-message" }

// parseSaid returns the message of a cookie, nil if there is none.
func parseSaid(value string) *said {
	what, rest, _ := strings.Cut(value, ".")
	count, span, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(count)
	switch {
	case err != nil:
		return nil
	case n == 0:
		return &said{Text: "Nothing was changed."}
	case what == "fetch":
		return &said{Text: humanize.Count(n, "feed") + " will be fetched."}
	case what == "undo":
		return &said{Text: "Took back " + humanize.Count(n, "change") + ".", Undo: span}
	case what == "added":
		return &said{Text: "The feed is added.", Undo: span}
	case texts[what] == "":
		return nil
	}
	return &said{Text: fmt.Sprintf(texts[what], humanize.Count(n, "entry")), Undo: span}
}

// takeSaid returns the message for this page, which is shown only once.
func (c *visit) takeSaid() *said {
	cookie, err := c.r.Cookie(saidCookie)
	if err != nil {
		return nil
	}
	c.setCookie(saidCookie, "", -time.Second)
	m := parseSaid(cookie.Value)
	if m != nil {
		m.Back = strings.TrimPrefix(c.r.URL.RequestURI(), c.base)
	}
	return m
}

// undo takes back a change.
func (c *visit) undo() error {
	var span undo.Span
	if _, err := fmt.Sscanf(c.form.Get("change"), "%d.%d.%d", &span.Number, &span.From, &span.To); err != nil {
		c.fail(http.StatusBadRequest, "It is not clear what is to be taken back.")
		return nil
	}
	done, err := c.v.TakeBack(span)
	if err != nil {
		return err
	}
	return c.say("undo", done)
}

// mark marks entries: those that are ticked, those between them, those above, or all of a list.
func (c *visit) mark() error {
	s := scopeOf(c.form.Get("in"), c.form)
	what := c.form.Get("do")
	var ticked []greader.ID
	for _, text := range c.form["e"] {
		if key := parseKey(text); key != 0 {
			ticked = append(ticked, key)
		}
	}
	var list []server.Entry
	var err error
	switch what {
	case "read", "unread", "star", "unstar", "next":
		if what == "next" {
			what = "read"
			c.form.Set("back", c.form.Get("next"))
		}
		list = c.v.Items(ticked)
	case "range", "above", "all":
		list, err = c.span(s, what, ticked)
		what = "read"
	default:
		c.fail(http.StatusBadRequest, "It is not clear how to mark.")
		return nil
	}
	if err != nil {
		return err
	}
	flags := map[string][2]string{"read": {"S", ""}, "unread": {"", "S"}, "star": {"F", ""}, "unstar": {"", "F"}}[what]
	done, err := c.v.Mark(list, flags[0], flags[1])
	if err != nil {
		return err
	}
	return c.say(what, done)
}

// lately is how long before a list was made an entry may have been named that came later: a fetcher names entries
// before it delivers them.
const lately = time.Hour

// span returns the unread entries of a list that are between the ticked ones, or above the last ticked one or the end
// of the page, or all. None came after the list was made.
func (c *visit) span(s scope, what string, ticked []greader.ID) (list []server.Entry, err error) {
	from, before := parseKey(c.form.Get("last")), greader.ID(0)
	switch {
	case what == "all":
		from = 0
	case len(ticked) > 0:
		from = slices.Min(ticked)
		if what == "range" {
			before = slices.Max(ticked) + 1
		}
	case what == "range":
		return nil, nil
	}
	all, err := c.entries(s, from, before, false)
	if err != nil {
		return nil, err
	}
	made := time.UnixMicro(s.At)
	for e := range all {
		at := time.UnixMicro(e.Micros())
		if !e.Unread() || at.After(made) {
			continue
		}
		if made.Sub(at) < lately && c.v.Store.Record(e.Ref()).Moved().After(made) {
			continue
		}
		list = append(list, e)
	}
	return list, nil
}

// refresh leaves due markers for the feeds of a list.
func (c *visit) refresh() error {
	n, err := c.v.Fetch(c.v.FeedsIn(scopeOf(c.form.Get("in"), c.form).stream()))
	if err != nil {
		return err
	}
	return c.say("fetch", server.Done{Count: n})
}
