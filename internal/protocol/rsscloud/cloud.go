package rsscloud

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/internal/text/xmltext"
)

// MaxURL is the maximum length of a URL that a cloud accepts, in bytes.
const MaxURL = 2048

// Request is a request for notification, as a cloud receives it ("Requesting
// notification"). [Register] sends it.
type Request struct {
	Procedure string // XML-RPC procedure to call
	Port      int    // 1 to 65535
	Path      string // begins with a slash; may have a query
	Protocol  string // HTTPPost, HTTPSPost or XMLRPC
	// Domain is a name or an address, or "" for the address of the caller.
	Domain string
	URLs   []string // URLs of feeds as written, without duplicates
}

// A Sentence is an error for the caller of a cloud, in the form of a sentence.
type Sentence string

func (s Sentence) Error() string { return string(s) }

// Sayf returns a formatted [Sentence].
func Sayf(format string, args ...any) error { return Sentence(fmt.Sprintf(format, args...)) }

// Missing returns an error with the parameters that a request lacks, in the traditional order.
func Missing(names ...string) error {
	return Sayf("The following parameters were missing from the request body: %s.", strings.Join(names, ", "))
}

// ReadRequest reads a REST request. Names of parameters may be in any case, and each that
// begins with "url" names a feed. most is the maximum number of feeds.
func ReadRequest(form url.Values, most int) (Request, error) {
	var r Request
	var missing []string
	given := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(form)) {
		name := strings.ToLower(key)
		if !strings.HasPrefix(name, "url") {
			given[name] = strings.TrimSpace(form.Get(key))
			continue
		}
		for _, u := range form[key] {
			if err := r.add(u, most); err != nil {
				return r, err
			}
		}
	}
	for _, name := range []string{"port", "path", "protocol"} {
		if given[name] == "" {
			missing = append(missing, name)
		}
	}
	if len(r.URLs) == 0 {
		missing = append(missing, "url1")
	}
	if len(missing) > 0 {
		return r, Missing(missing...)
	}
	r.Procedure, r.Domain = given["notifyprocedure"], given["domain"]
	return r, r.set(given["port"], given["path"], given["protocol"])
}

// RequestOf reads an XML-RPC request: notifyProcedure, port, path, protocol, urlList, and
// optionally domain.
func RequestOf(params []Value, most int) (Request, error) {
	var r Request
	switch {
	case len(params) < 5:
		return r, Sayf(`Can't call "pleaseNotify" because there aren't enough parameters.`)
	case len(params) > 6:
		return r, Sayf(`Can't call "pleaseNotify" because there are too many parameters.`)
	}
	// A list or struct has an empty text, which would mean something else.
	for i, name := range []string{"notifyProcedure", "port", "path", "protocol", "urlList", "domain"}[:len(params)] {
		if p := params[i]; p.Members != nil || p.IsList && i != 4 {
			return r, Sayf(`Can't call "pleaseNotify" because %s has the wrong type.`, name)
		}
	}
	// some clients send false for "none"
	optional := func(p Value) string {
		if p.Text == "0" || strings.EqualFold(p.Text, "false") {
			return ""
		}
		return p.Text
	}
	if len(params) == 6 {
		r.Domain = optional(params[5])
	}
	for _, u := range params[4].Strings() {
		if err := r.add(u, most); err != nil {
			return r, err
		}
	}
	if len(r.URLs) == 0 {
		return r, Sayf("The list of feeds is empty.")
	}
	r.Procedure = optional(params[0])
	return r, r.set(params[1].Text, params[2].Text, params[3].Text)
}

func (r *Request) add(u string, most int) error {
	if u = strings.TrimSpace(u); u == "" || slices.Contains(r.URLs, u) {
		return nil
	}
	if len(r.URLs) == most {
		return Sayf("One request can name %d feeds at most; divide it.", most)
	}
	r.URLs = append(r.URLs, u)
	return nil
}

var (
	domainName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.?$`)
	})
	procedure = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,200}$`) })
)

// set sets port, path and protocol, if they are valid.
func (r *Request) set(port, path, protocol string) error {
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 || strings.Trim(port, "0123456789") != "" {
		return Sayf("The port %q is not a number from 1 to 65535.", termsafe.Brief(port))
	}
	r.Port = n
	r.Protocol = Cloud{Protocol: protocol}.protocol()
	switch r.Protocol {
	case HTTPPost, HTTPSPost:
	case XMLRPC:
		if r.Procedure == "" {
			return Sayf("With the protocol xml-rpc, notifyProcedure must name the procedure to call.")
		}
		if !procedure().MatchString(r.Procedure) {
			return Sayf("The name in notifyProcedure is not valid.")
		}
	default:
		return Sayf("Can't accept the subscription because the protocol, %q, is unsupported.", termsafe.Brief(protocol))
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	u, err := url.Parse("http://x" + path)
	if err != nil || len(path) > MaxURL || u.Host != "x" || u.User != nil || u.Fragment != "" ||
		strings.ContainsFunc(path, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		return Sayf("The path is not valid.")
	}
	r.Path = path
	r.Domain = strings.Trim(r.Domain, "[]")
	return r.checkDomain()
}

// checkDomain returns an error if the domain is neither "" nor a valid host.
func (r *Request) checkDomain() error {
	if _, err := netip.ParseAddr(r.Domain); r.Domain != "" && err != nil &&
		(len(r.Domain) > 253 || !domainName().MatchString(r.Domain)) {
		return Sayf("The domain is neither a name nor an address.")
	}
	return nil
}

// Callback returns the URL to notify; caller is the address of the request.
func (r *Request) Callback(caller netip.Addr) string {
	host := r.Domain
	if host == "" {
		host = caller.WithZone("").String()
	}
	scheme := "http"
	if r.Protocol == HTTPSPost || r.Port == 443 {
		scheme = "https"
	}
	return origin(scheme, host, r.Port) + r.Path
}

// Verify sends a challenge to a callback by GET ("Errors", update of 10/16/09). It returns
// an error unless the answer contains the challenge.
func Verify(ctx context.Context, c *fetch.Client, callback, feed, challenge string) error {
	sep := "?"
	if strings.Contains(callback, "?") {
		sep = "&"
	}
	a, err := c.Post(ctx, &fetch.Post{URL: callback + sep + "url=" + url.QueryEscape(feed) + "&challenge=" +
		url.QueryEscape(challenge), Method: http.MethodGet})
	switch {
	case err != nil:
		return err
	case !a.Success():
		return a.Error("")
	case !bytes.Contains(a.Body, []byte(challenge)):
		return fmt.Errorf("%s: the answer does not contain the challenge", a.FinalURL)
	}
	return nil
}

// Notify notifies a callback of an update of a feed by its protocol ("XML-RPC interface",
// "HTTP POST interface"). Any successful answer is accepted, except an XML-RPC fault. With
// strict, an XML-RPC call must be answered with true.
func Notify(ctx context.Context, c *fetch.Client, callback, protocol, procedure, feed string, strict bool) error {
	p := fetch.Post{URL: callback, ContentType: "application/x-www-form-urlencoded"}
	if protocol != XMLRPC {
		p.Body = []byte(form("url", feed))
		a, err := c.Post(ctx, &p)
		if err == nil && !a.Success() {
			err = a.Error("")
		}
		return err
	}
	v, err := Call(ctx, c, p, procedure, feed)
	if !strict && errors.As(err, new(*unreadableError)) {
		return nil
	}
	if err == nil && strict && !v.True() {
		err = fmt.Errorf("%s: %s was not answered with true", feedurl.Public(callback), procedure)
	}
	return err
}

// EncodeResult returns the answer to a REST request. element is notifyResult or result.
func EncodeResult(element string, success bool, msg string) []byte {
	return fmt.Appendf(nil, "<?xml version=\"1.0\"?>\n<%s success=\"%v\" msg=\"%s\"/>\n", element, success,
		xmltext.Attr(msg))
}
