// Package rsscloud speaks rssCloud as an aggregator, which asks to be told of a
// feed's updates, as an author, who tells a cloud of his own, and as a cloud.
//
// The specification is the walkthrough of rsscloud.co ("Implementor's guide to
// rssCloud"); section names in comments are its. Peers depart from it in many
// ways, and what they are known to do is understood: see the test of each.
//
// A cloud (or hub) is named by an element of the feed, [Cloud]. [Register] asks
// it for notification; it calls the callback once with a challenge, which
// [Challenge] reads, and from then on with notifications, which
// [ReadNotification] reads. [Ping] and [Save] are the author's. What is a cloud's is
// the inverse of these: [ReadRequest] and [RequestOf], [Verify], [Notify], and the
// answers, [EncodeResult] and [EncodeFault]. Nothing here
// keeps state, and all of it is safe for concurrent use.
package rsscloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/feedurl"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/lazy"
	"github.com/lektordir/lektor/internal/termsafe"
)

// Protocols of a cloud element.
const (
	HTTPPost  = "http-post"
	HTTPSPost = "https-post"
	XMLRPC    = "xml-rpc"
)

// NotifyProcedure is the name of the procedure that a cloud is asked to call by
// XML-RPC. Our callback answers to any.
const NotifyProcedure = "rssCloud.notify"

// Cloud is the cloud element of a feed, its attributes as found. Port is 0 when
// there is none that can be read.
type Cloud struct {
	Domain            string
	Port              int
	Path              string // perhaps with a query
	RegisterProcedure string // only for XML-RPC
	Protocol          string
}

// protocol is the protocol in the form of the constants.
func (c Cloud) protocol() string {
	p := strings.ToLower(strings.TrimSpace(c.Protocol))
	switch p {
	case "xmlrpc":
		return XMLRPC
	case "", "http", "post", "rest":
		return HTTPPost
	case "https":
		return HTTPSPost
	}
	return p
}

// IsXMLRPC reports whether registration is by XML-RPC.
func (c Cloud) IsXMLRPC() bool { return c.protocol() == XMLRPC }

// URL is where registrations are sent. Port 443 means https, as does the
// protocol https-post; a missing port is the scheme's own. The error is a
// [SOAPError] for a cloud that wants SOAP.
func (c Cloud) URL() (string, error) {
	scheme := "http"
	switch p := c.protocol(); {
	case p == "soap":
		return "", &SOAPError{}
	case p != HTTPPost && p != HTTPSPost && p != XMLRPC:
		return "", fmt.Errorf("the cloud's protocol %q is not supported, only http-post, https-post and xml-rpc", termsafe.Brief(c.Protocol))
	case p == HTTPSPost, c.Port == 443:
		scheme = "https"
	}
	// Some write a URL, or what is left of one.
	domain := strings.TrimSpace(c.Domain)
	if _, rest, ok := strings.Cut(domain, "://"); ok {
		domain = rest
	}
	domain = strings.Trim(strings.TrimSuffix(domain, "/"), "[]")
	if domain == "" {
		return "", errors.New("the cloud has no domain")
	}
	if c.Port < 0 || c.Port > 65535 || strings.ContainsAny(domain, "/@?#% \\") {
		return "", fmt.Errorf("the cloud's address %q, port %d, is none", termsafe.Brief(c.Domain), c.Port)
	}
	u, err := feedurl.Parse(origin(scheme, domain, c.Port) + "/" + strings.TrimLeft(strings.TrimSpace(c.Path), "/"))
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// origin returns the beginning of a URL, up to its path. The port of the scheme, which
// 0 stands for, too, is left out.
func origin(scheme, host string, port int) string {
	if port != 0 && !(scheme == "http" && port == 80) && !(scheme == "https" && port == 443) {
		host = net.JoinHostPort(host, strconv.Itoa(port))
	} else if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return scheme + "://" + host
}

// Callback is where a cloud shall send notifications.
type Callback struct {
	HTTPS  bool
	Domain string // name or address, without port
	Port   int
	Path   string // begins with a slash, has no query
}

// Register asks a cloud for notification of updates of feeds ("Requesting
// notification"). It makes up for what peers are known to lack: a request that
// is refused is made again with http-post for https-post, with url for url1,
// without the parameter domain, or at the path that the same software has
// elsewhere. The error of a refusal is a [fetch.RefusedError], the first one; every
// other ends the attempts.
func Register(ctx context.Context, c *fetch.Client, cloud Cloud, back Callback, feeds []string) error {
	target, err := cloud.URL()
	if err != nil {
		return err
	}
	if cloud.IsXMLRPC() {
		return registerXMLRPC(ctx, c, cloud, target, back, feeds)
	}
	protocols := []string{HTTPPost}
	if back.HTTPS {
		protocols = []string{HTTPSPost, HTTPPost}
	}
	names := []bool{false}
	if len(feeds) == 1 {
		names = []bool{false, true}
	}
	var first error
	for _, bare := range names {
		for _, protocol := range protocols {
			_, err := tell(ctx, c, elsewhere(target), telling{strict: true}, registration(back, protocol, feeds, bare))
			if err == nil || !errors.As(err, new(*fetch.RefusedError)) {
				return err
			}
			first = cmp.Or(first, err)
		}
	}
	return first
}

// registration is the form of "Requesting notification using REST".
func registration(back Callback, protocol string, feeds []string, bare bool) string {
	f := &form{}
	f.add("notifyProcedure", "")
	f.add("port", strconv.Itoa(back.Port))
	f.add("path", back.Path)
	f.add("protocol", protocol)
	for i, u := range feeds {
		if bare {
			f.add("url", u)
		} else {
			f.add("url"+strconv.Itoa(i+1), u)
		}
	}
	f.add("domain", back.Domain)
	return f.String()
}

// form keeps the order of its fields, as url.Values does not.
type form struct{ strings.Builder }

func (f *form) add(name, value string) {
	if f.Len() > 0 {
		f.WriteByte('&')
	}
	f.WriteString(name + "=" + url.QueryEscape(value))
}

// registerXMLRPC is "Requesting notification using XML-RPC or SOAP". The
// walkthrough has five parameters; clouds that know the later one, domain, take
// it as the sixth, and others may refuse so many.
func registerXMLRPC(ctx context.Context, c *fetch.Client, cloud Cloud, target string, back Callback, feeds []string) error {
	procedure := cmp.Or(strings.TrimSpace(cloud.RegisterProcedure), "rssCloud.pleaseNotify")
	params := []any{NotifyProcedure, back.Port, back.Path, XMLRPC, feeds, back.Domain}
	var first error
	for _, n := range []int{6, 5} {
		v, err := call(ctx, c, fetch.Post{URL: target}, procedure, params[:n]...)
		if err == nil && !v.True() && v.Members == nil {
			err = &fetch.RefusedError{URL: target, Message: cmp.Or(termsafe.Brief(v.Text), "it answered, but not that it worked")}
		}
		if _, refused := errors.AsType[*fetch.RefusedError](err); !refused {
			return err
		}
		first = cmp.Or(first, err)
	}
	return first
}

// elsewhere lists the URLs under which software that is reached at one is known
// to listen, the given one first: with and without /rsscloud, and a slash at
// the end; in lower case where the element is not.
func elsewhere(target string) []string {
	u, err := url.Parse(target)
	if err != nil || u.RawQuery != "" {
		return []string{target}
	}
	out := []string{target}
	add := func(path string) {
		v := *u
		v.Path, v.RawPath = path, ""
		if s := v.String(); !slices.Contains(out, s) && len(out) < 4 {
			out = append(out, s)
		}
	}
	p := strings.TrimSuffix(u.Path, "/")
	last := p[strings.LastIndexByte(p, '/')+1:]
	switch strings.ToLower(last) {
	case "":
		add("/rsscloud/pleaseNotify")
		add("/pleaseNotify")
		return out
	case "pleasenotify":
		last = "pleaseNotify"
	case "ping":
		last = "ping"
	default:
		return out
	}
	if strings.HasPrefix(strings.ToLower(p), "/rsscloud/") {
		add("/rsscloud/" + last)
		add("/" + last)
	} else {
		add("/" + last)
		add("/rsscloud/" + last)
	}
	add(p + "/")
	return out
}

// telling is how a cloud is told something.
type telling struct {
	chosen bool // as in [fetch.Post]
	// strict takes no answer for success that does not say so.
	strict bool
}

// tell posts a form to the first of some URLs that is there, and returns the
// message of its verdict.
func tell(ctx context.Context, c *fetch.Client, targets []string, how telling, form string) (string, error) {
	var first error
	for _, target := range targets {
		// Any type is accepted: servers that are asked for text/xml answer
		// 406, and what it is can be seen.
		a, err := c.Post(ctx, &fetch.Post{URL: target, ContentType: "application/x-www-form-urlencoded", Body: []byte(form), Chosen: how.chosen})
		if err != nil {
			return "", err
		}
		msg, err := verdict(a, how.strict)
		first = cmp.Or(first, err)
		if err == nil || a.Status != http.StatusNotFound && a.Status != http.StatusMethodNotAllowed {
			return msg, err
		}
	}
	return "", first
}

// The verdict is in attributes of notifyResult or result, in double quotes,
// single ones or none, in documents that are not always well-formed, or in
// JSON. It is looked for as text.
var (
	successWord = lazy.Regexp(`(?i)\bsuccess["']?\s*[=:]\s*["']?\s*(true|false|1|0|yes|no)\b`)
	msgWord     = lazy.Regexp(`(?is)\bmsg["']?\s*[=:]\s*(?:"([^"]*)"|'([^']*)')`)
	htmlPage    = lazy.Regexp(`(?i)^\s*(?:<!doctype\s+html|<html)`)
)

// verdict reads the answer to a registration or ping.
func verdict(a *fetch.Answer, strict bool) (string, error) {
	msg := ""
	if m := msgWord().FindSubmatch(a.Body); m != nil {
		msg = termsafe.Brief(html.UnescapeString(string(m[1]) + string(m[2])))
	}
	if m := successWord().FindSubmatch(a.Body); m != nil {
		switch strings.ToLower(string(m[1])) {
		case "false", "0", "no":
			e := &fetch.RefusedError{URL: a.FinalURL, Message: msg}
			if !a.Success() {
				e.Status = a.Status
			}
			return msg, e
		}
	} else if a.Success() && htmlPage().Match(a.Body) {
		return "", &fetch.RefusedError{URL: a.FinalURL, Message: "it answered with a web page, so it is no cloud"}
	} else if a.Success() && strict {
		return "", &fetch.RefusedError{URL: a.FinalURL, Message: "it answered, but not with a result, so it is no cloud"}
	}
	return msg, a.Verdict(msg, "and registered nothing")
}

// PingTarget is where to ping.
type PingTarget struct {
	// URLs are tried in turn until one is there; for XML-RPC it is one.
	URLs   []string
	XMLRPC bool
	Chosen bool // by the user; see [fetch.Post]
}

// PingTarget tells where the cloud of a feed is to be pinged. The element says
// only where to register, which by custom is a path beside it.
func (c Cloud) PingTarget() (PingTarget, error) {
	target, err := c.URL()
	if err != nil {
		return PingTarget{}, err
	}
	return pingTarget(target, c.IsXMLRPC()), nil
}

// ParsePingTarget reads the URL of a cloud as a user gives it: that of pinging
// or of registration, http(s)://host/RPC2 or xmlrpc://host/path for XML-RPC, or
// only the host.
func ParsePingTarget(s string) (PingTarget, error) {
	s = strings.TrimSpace(s)
	rpc := false
	if rest, ok := strings.CutPrefix(s, "xmlrpc://"); ok {
		s, rpc = "http://"+rest, true
	}
	u, err := feedurl.Parse(s)
	if err != nil {
		return PingTarget{}, err
	}
	p := strings.ToLower(strings.TrimSuffix(u.Path, "/"))
	if rpc && p == "" {
		u.Path, u.RawPath = "/RPC2", "" // that of the walkthrough, and of all since
	}
	t := pingTarget(u.String(), rpc || strings.HasSuffix(p, "/rpc2"))
	t.Chosen = true
	return t, nil
}

func pingTarget(target string, rpc bool) PingTarget {
	if rpc {
		return PingTarget{URLs: []string{target}, XMLRPC: true}
	}
	u, err := url.Parse(target)
	if err != nil {
		return PingTarget{URLs: []string{target}}
	}
	p := strings.TrimSuffix(u.Path, "/")
	switch i := strings.LastIndexByte(p, '/') + 1; {
	case strings.EqualFold(p[i:], "pleaseNotify"):
		u.Path, u.RawPath = p[:i]+"ping", ""
	case p == "":
		u.Path, u.RawPath, u.RawQuery = "/rsscloud/ping", "", ""
	}
	return PingTarget{URLs: elsewhere(u.String())}
}

// Ping tells a cloud that a feed was updated ("Pinging via REST", "Pinging via
// XML-RPC"), and returns what the cloud said to it, in one line. The feed must be
// saved already: the cloud reads it.
func Ping(ctx context.Context, c *fetch.Client, t PingTarget, feed string) (string, error) {
	if !t.XMLRPC {
		f := &form{}
		f.add("url", feed)
		return tell(ctx, c, t.URLs, telling{chosen: t.Chosen}, f.String())
	}
	v, err := call(ctx, c, fetch.Post{URL: t.URLs[0], Chosen: t.Chosen}, "rssCloud.ping", feed)
	if err != nil {
		return "", err
	}
	if v.Text == "0" || strings.EqualFold(v.Text, "false") {
		return "", &fetch.RefusedError{URL: t.URLs[0]}
	}
	return termsafe.Brief(v.Members["message"].Text), nil
}

// call is [Call], with a RefusedError for a fault, and for the struct that some
// return in the place of what the walkthrough leaves open.
func call(ctx context.Context, c *fetch.Client, server fetch.Post, method string, params ...any) (Value, error) {
	v, err := Call(ctx, c, server, method, params...)
	if f, ok := errors.AsType[*Fault](err); ok {
		return v, &fetch.RefusedError{URL: server.URL, Message: termsafe.Brief(f.Error())}
	}
	if err == nil && v.Members["flError"].True() {
		return v, &fetch.RefusedError{URL: server.URL, Message: termsafe.Brief(v.Members["message"].Text)}
	}
	return v, err
}

// Save stores a feed document in a cloud, which tells its subscribers ("Saving
// the feed through the cloud"), and returns the feed's public URL as the cloud
// says it, in one line. url is that of the cloud's XML-RPC, chosen as in
// [fetch.Post]. The password is sent to no other server: a redirect there is an
// error.
func Save(ctx context.Context, c *fetch.Client, url string, chosen bool, user, password, document string) (string, error) {
	v, err := call(ctx, c, fetch.Post{URL: url, Chosen: chosen, Secret: true}, "rssCloud.saveRss", user, password, document)
	if err != nil {
		return "", err
	}
	if v.Text == "" {
		if v.Text = v.Members["url"].Text; v.Text == "" {
			return "", &fetch.RefusedError{URL: url, Message: "it did not say where the feed is now"}
		}
	}
	return termsafe.Brief(v.Text), nil
}
