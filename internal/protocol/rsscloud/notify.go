package rsscloud

import (
	"bytes"
	"errors"
	"mime"
	"net"
	"net/url"
	"strings"
)

// MaxChallenge is the maximum length of a challenge that is answered, in bytes. The
// walkthrough has no limit, and sends 20 characters.
const MaxChallenge = 4096

// Notification is a message that feeds were updated. It is not trusted: anybody who knows
// the callback can send it.
type Notification struct {
	URLs []string // at most maxURLs
	// XMLRPC reports whether it was an XML-RPC call, and needs such an answer.
	XMLRPC bool
}

const maxURLs = 64

// ReadNotification reads a notification from the body of a POST to the callback ("XML-RPC
// interface", "HTTP POST interface"), its Content-Type, and the query of its URL, where
// some clouds put the form. An XML-RPC body is recognised with any type. The error is a
// [SOAPError] for SOAP. After an error, XMLRPC is still valid.
func ReadNotification(contentType, query string, body []byte) (Notification, error) {
	var n Notification
	mediaType, _, _ := mime.ParseMediaType(contentType)
	text := bytes.TrimPrefix(bytes.TrimSpace(body), []byte("\ufeff"))
	if strings.Contains(mediaType, "soap") {
		return n, &SOAPError{}
	}
	if bytes.HasPrefix(text, []byte("<")) || strings.HasSuffix(mediaType, "xml") {
		n.XMLRPC = true
		m, err := Decode(text)
		if err != nil {
			n.XMLRPC = !errors.As(err, new(*SOAPError))
			return n, err
		}
		for _, p := range m.Params {
			n.add(p.Strings()...)
		}
		if len(n.URLs) == 0 {
			return n, errors.New("it contains no URL")
		}
		return n, nil
	}
	// A form may come without its type, or with the type of text.
	for _, source := range []string{string(text), query} {
		// If the URL is not percent-encoded, the parameters after it belong to it.
		if rest, ok := strings.CutPrefix(source, "url="); ok && strings.Contains(rest, "://") &&
			strings.ContainsAny(rest, "&;+") {
			n.add(rest)
		}
		for name, values := range loose(source) {
			if name == "url" || strings.HasPrefix(name, "url") && strings.Trim(name[3:], "0123456789") == "" {
				n.add(values...)
			}
		}
	}
	if len(n.URLs) == 0 {
		return n, errors.New("it contains no URL")
	}
	return n, nil
}

func (n *Notification) add(urls ...string) {
	for _, u := range urls {
		if u != "" && len(n.URLs) < maxURLs {
			n.URLs = append(n.URLs, u)
		}
	}
}

// loose parses a query as far as possible.
func loose(query string) url.Values {
	v, _ := url.ParseQuery(query)
	return v
}

// Challenge reads the request by which a cloud verifies a registration: a GET with the
// parameters url and challenge ("Errors", update of 10/16/09). wanted are the feeds of the
// current registration. It returns the challenge, and the feed of wanted that the request
// names, "" if it names none. ok is false if there is no challenge, if it is too
// long, or if it is for another feed.
//
// Clouds write the url with or without percent-encoding. Without it, a query of the feed's
// URL runs into that of the request.
func Challenge(rawQuery string, wanted []string) (text, feed string, ok bool) {
	q := loose(rawQuery)
	matched := q.Get("url") == ""
	for _, w := range wanted {
		if w != "" && Key(q.Get("url")) == Key(w) {
			feed, matched = w, true
		} else if at := strings.Index("&"+rawQuery, "&url="+w); at >= 0 && strings.ContainsAny(w, "?&=+%") {
			end := at + len("url="+w)
			if end == len(rawQuery) || rawQuery[end] == '&' {
				q = loose(rawQuery[:at] + rawQuery[end:])
				feed, matched = w, true
			}
		}
	}
	challenge := q.Get("challenge")
	if !matched || challenge == "" || len(challenge) > MaxChallenge {
		return "", "", false
	}
	return challenge, feed, true
}

// Key returns the same text for all URLs by which peers name one feed. It ignores the scheme,
// the case of the host, the ports 80 and 443, percent-encoding, a slash at the end of the
// path, and the fragment.
func Key(raw string) string {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Host == "" {
		return raw
	}
	host := strings.ToLower(u.Hostname())
	if p := u.Port(); p != "" && p != "80" && p != "443" {
		host = net.JoinHostPort(host, p)
	}
	query := u.RawQuery
	if s, err := url.QueryUnescape(query); err == nil {
		query = s
	}
	return host + "\x00" + strings.TrimSuffix(u.Path, "/") + "\x00" + query
}
