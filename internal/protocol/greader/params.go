package greader

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/text/humanize"
)

// Values are the parameters of a request.
type Values = url.Values

// ParseValues parses a query or form. A pair that is malformed is kept as it is, because a client
// that cannot escape must be able to log in. Unlike [url.ParseQuery], it has no limit of pairs:
// clients mark more than 10,000 items in one request.
func ParseValues(text string) Values {
	v := Values{}
	for text != "" {
		var pair string
		pair, text, _ = strings.Cut(text, "&")
		if pair == "" {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		key = unescape(key)
		v[key] = append(v[key], unescape(value))
	}
	return v
}

// ParseMultipart parses a form of the type multipart/form-data.
func ParseMultipart(body []byte, boundary string) (Values, error) {
	v, r := Values{}, multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := r.NextRawPart()
		if err == io.EOF {
			return v, nil
		}
		if err != nil {
			return nil, err
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		v[part.FormName()] = append(v[part.FormName()], string(value))
	}
}

// unescape decodes a part of a query, and returns it as it is if it is malformed.
func unescape(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// List is what a client wants to list: a stream, narrowed by parameters.
type List struct {
	Stream           Stream
	Include, Exclude []Stream // include: items in any of these, if there are any
	Count            int
	Oldest           bool // oldest first; otherwise newest first
	// From and Before bound the ids: those of From and later, but earlier than Before; zero means
	// no bound.
	From, Before ID
}

// DefaultCount is the number of items of a list if the client does not say.
const DefaultCount = 20

// ParseList reads the parameters of a list. A malformed number counts as missing. The error is for
// a malformed stream or continuation.
func ParseList(stream string, v Values, most int) (List, error) {
	l := List{Count: count(v.Get("n"), most), Oldest: v.Get("r") == "o"}
	var ok bool
	if l.Stream, ok = ParseStream(stream); !ok {
		return l, fmt.Errorf("s: %q is not the id of a stream", brief(stream))
	}
	l.Include, l.Exclude = streams(v["it"]), streams(v["xt"])
	if t, ok := seconds(v.Get("ot")); ok {
		l.From = FirstOf(t)
	}
	if t, ok := seconds(v.Get("nt")); ok {
		l.Before = FirstOf(t + 1)
	}
	c := v.Get("c")
	if c == "" {
		return l, nil
	}
	last, ok := ParseID(c)
	switch {
	case !ok:
		return l, fmt.Errorf("c: %q is not a continuation of this server", brief(c))
	case l.Oldest:
		l.From = max(l.From, last+1)
	case l.Before == 0 || last < l.Before:
		l.Before = last
	}
	return l, nil
}

// brief cuts a text that a client sent, for a message.
func brief(s string) string { return humanize.Cut(s, 100) }

// count returns the number of items that a client wants, at most most.
func count(n string, most int) int {
	number, _ := strconv.Atoi(n) // the greatest one if it is out of range, 0 if it is malformed
	if number <= 0 {
		number = DefaultCount
	}
	return min(number, most)
}

// streams parses ids of streams, and ignores malformed ones.
func streams(ids []string) (list []Stream) {
	for _, id := range ids {
		if s, ok := ParseStream(id); ok && id != "" {
			list = append(list, s)
		}
	}
	return list
}

// seconds parses a Unix time in seconds.
func seconds(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 {
		return 0, false
	}
	return min(n, 1<<40), true
}

// ParseStamp parses the time of a mark: nanoseconds if it has 19 digits, microseconds if it has 16 to 18,
// milliseconds if it has 13 to 15, else seconds, of which it includes all. It reports false if it is malformed.
func ParseStamp(ts string) (time.Time, bool) {
	n, err := strconv.ParseInt(ts, 10, 64)
	if err != nil || n < 0 {
		return time.Time{}, false
	}
	switch {
	case len(ts) >= 19:
		return time.Unix(0, n), true
	case len(ts) >= 16:
		return time.UnixMicro(n), true
	case len(ts) >= 13:
		return time.UnixMilli(n).Add(time.Millisecond - time.Microsecond), true
	}
	return time.Unix(n, int64(time.Second-time.Microsecond)), true
}

// ParseIDs parses ids of items. Malformed ones are left out, and so are duplicates.
func ParseIDs(texts []string) []ID {
	ids := make([]ID, 0, len(texts))
	seen := make(map[ID]struct{}, len(texts))
	for _, s := range texts {
		id, ok := ParseID(s)
		if _, again := seen[id]; !ok || again {
			continue
		}
		seen[id] = struct{}{}
		ids = append(ids, id)
	}
	return ids
}
