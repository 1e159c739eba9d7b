// Package rsscloud implements rssCloud for aggregators, which request notifications of
// updates, for publishers, who notify a cloud, and for clouds.
//
// The specification is the walkthrough of rsscloud.co ("Implementor's guide to rssCloud"),
// and section names in comments are from it. Peers deviate from it in many ways. The
// package accepts the known deviations; its tests list them.
//
// A feed names its cloud in an element, [Cloud]. [Register] requests notification from it.
// The cloud then calls the callback once with a challenge, which [Challenge] reads, and
// later with notifications, which [ReadNotification] reads. [Ping] and [Save] are for
// publishers. The functions for clouds are [ReadRequest], [RequestOf], [Verify], [Notify],
// [EncodeResult] and [EncodeFault]. The package keeps no state, and is safe for concurrent
// use.
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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Protocols of a cloud element.
const (
	HTTPPost  = "http-post"
	HTTPSPost = "https-post"
	XMLRPC    = "xml-rpc"
)

// NotifyProcedure is the name of the XML-RPC procedure that we request. Our callback
// accepts any name.
const NotifyProcedure = "rssCloud.notify"

// Cloud is the cloud element of a feed, with its attributes as found. Its path may have a query.
type Cloud feedconv.Cloud

// protocol returns the protocol as one of the constants.
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

// IsXMLRPC reports whether the cloud is registered with by XML-RPC.
func (c Cloud) IsXMLRPC() bool { return c.protocol() == XMLRPC }

// URL returns the URL for registrations. Port 443 or the protocol https-post means https. A
// missing port is the default of the scheme. The error is a [SOAPError] for a SOAP cloud.
func (c Cloud) URL() (string, error) {
	scheme := "http"
	switch p := c.protocol(); {
	case p == "soap":
		return "", &SOAPError{}
	case p != HTTPPost && p != HTTPSPost && p != XMLRPC:
		return "", fmt.Errorf("the cloud's protocol %q is not supported, only http-post, https-post and xml-rpc",
			termsafe.Brief(c.Protocol))
	case p == HTTPSPost, c.Port == 443:
		scheme = "https"
	}
	// Some feeds have a URL here, or a part of one.
	domain := strings.TrimSpace(c.Domain)
	if _, rest, ok := strings.Cut(domain, "://"); ok {
		domain = rest
	}
	domain = strings.Trim(strings.TrimSuffix(domain, "/"), "[]")
	if domain == "" {
		return "", errors.New("the cloud has no domain")
	}
	if c.Port < 0 || c.Port > 65535 || strings.ContainsAny(domain, "/@?#% \\") {
		return "", fmt.Errorf("the cloud's address %q, port %d, is not valid", termsafe.Brief(c.Domain), c.Port)
	}
	u, err := feedurl.Parse(origin(scheme, domain, c.Port) + "/" + strings.TrimLeft(strings.TrimSpace(c.Path), "/"))
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// origin returns the beginning of a URL, up to its path. It omits the default port of the
// scheme, and port 0.
func origin(scheme, host string, port int) string {
	if port != 0 && !(scheme == "http" && port == 80) && !(scheme == "https" && port == 443) {
		host = net.JoinHostPort(host, strconv.Itoa(port))
	} else if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return scheme + "://" + host
}

// Register requests notification of updates of feeds from a cloud ("Requesting
// notification"). back is the URL to which the cloud must send them, without a query. Register works
// around known deviations: a refused request is repeated with http-post for https-post, with url for
// url1, without the parameter domain, or at other paths of the same software. If all are refused, it
// returns the first [fetch.RefusedError]. Any other error ends the attempts.
func Register(ctx context.Context, c *fetch.Client, cloud Cloud, back *url.URL, feeds []string) error {
	target, err := cloud.URL()
	if err != nil {
		return err
	}
	if cloud.IsXMLRPC() {
		return registerXMLRPC(ctx, c, cloud, target, back, feeds)
	}
	protocols := []string{HTTPPost}
	if back.Scheme == "https" {
		protocols = []string{HTTPSPost, HTTPPost}
	}
	names := []bool{false}
	if len(feeds) == 1 {
		names = []bool{false, true}
	}
	var first error
	for _, bare := range names {
		for _, protocol := range protocols {
			_, err := postForm(ctx, c, elsewhere(target), false, true, registration(back, protocol, feeds, bare))
			if err == nil || !errors.As(err, new(*fetch.RefusedError)) {
				return err
			}
			first = cmp.Or(first, err)
		}
	}
	return first
}

// registration returns the form of "Requesting notification using REST".
func registration(back *url.URL, protocol string, feeds []string, bare bool) string {
	fields := []string{"notifyProcedure", "", "port", feedurl.Port(back), "path", back.Path, "protocol", protocol}
	for i, u := range feeds {
		name := "url" + strconv.Itoa(i+1)
		if bare {
			name = "url"
		}
		fields = append(fields, name, u)
	}
	return form(append(fields, "domain", back.Hostname())...)
}

// form returns a form of names and values, in their order, unlike url.Values.
func form(fields ...string) string {
	var pairs []string
	for pair := range slices.Chunk(fields, 2) {
		pairs = append(pairs, pair[0]+"="+url.QueryEscape(pair[1]))
	}
	return strings.Join(pairs, "&")
}

// registerXMLRPC implements "Requesting notification using XML-RPC or SOAP". The
// walkthrough has five parameters. Clouds that know domain, which was added later, expect
// it as the sixth; others may refuse it.
func registerXMLRPC(ctx context.Context, c *fetch.Client, cloud Cloud, target string, back *url.URL,
	feeds []string) error {
	procedure := cmp.Or(strings.TrimSpace(cloud.RegisterProcedure), "rssCloud.pleaseNotify")
	port, _ := strconv.Atoi(feedurl.Port(back)) // the port of a URL is a number
	params := []any{NotifyProcedure, port, back.Path, XMLRPC, feeds, back.Hostname()}
	var first error
	for _, n := range []int{6, 5} {
		v, err := call(ctx, c, fetch.Post{URL: target}, procedure, params[:n]...)
		if err == nil && !v.True() && v.Members == nil {
			err = &fetch.RefusedError{URL: target,
				Message: cmp.Or(termsafe.Brief(v.Text), "the answer does not report success")}
		}
		if _, refused := errors.AsType[*fetch.RefusedError](err); !refused {
			return err
		}
		first = cmp.Or(first, err)
	}
	return first
}

// elsewhere returns the URLs at which the software behind a URL is known to listen, the
// given one first: with and without /rsscloud, with a final slash, and in lower case.
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
	case "", "pleasenotify":
		last = "pleaseNotify"
	case "ping":
		last = "ping"
	default:
		return out
	}
	add("/rsscloud/" + last)
	add("/" + last)
	add(p + "/")
	return out
}

// postForm posts a form to the first of the URLs that exists, and returns the message of the
// answer. For chosen see [fetch.Post]. If strict is set, it accepts only an answer that reports success.
func postForm(ctx context.Context, c *fetch.Client, targets []string, chosen, strict bool, form string) (string,
	error) {
	var first error
	for _, target := range targets {
		// Accept any type: servers that are asked for text/xml may answer 406, and the type
		// can be detected.
		a, err := c.Post(ctx, &fetch.Post{URL: target, ContentType: "application/x-www-form-urlencoded",
			Body: []byte(form), Chosen: chosen})
		if err != nil {
			return "", err
		}
		msg, err := verdict(a, strict)
		first = cmp.Or(first, err)
		if err == nil || a.Status != http.StatusNotFound && a.Status != http.StatusMethodNotAllowed {
			return msg, err
		}
	}
	return "", first
}

// The verdict is in attributes of notifyResult or result, in double, single or no quotes,
// in XML that may be malformed, or in JSON. So it is searched for as text.
var (
	successWord = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\bsuccess["']?\s*[=:]\s*["']?\s*(true|false|1|0|yes|no)\b`)
	})
	msgWord = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?is)\bmsg["']?\s*[=:]\s*(?:"([^"]*)"|'([^']*)')`)
	})
	htmlPage = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^\s*(?:<!doctype\s+html|<html)`) })
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
		return "", &fetch.RefusedError{URL: a.FinalURL, Message: "it answered with a web page, so it is not a cloud"}
	} else if a.Success() && strict {
		return "", &fetch.RefusedError{URL: a.FinalURL,
			Message: "it answered, but not with a result, so it is not a cloud"}
	}
	return msg, a.Verdict(msg, "and registered nothing")
}

// PingTarget is the address of a cloud for pings.
type PingTarget struct {
	// URLs are tried in order until one exists. For XML-RPC there is one.
	URLs   []string
	XMLRPC bool
	Chosen bool // by the user; see [fetch.Post]
}

// PingTarget returns where to ping the cloud of a feed. The element names only the URL of
// registration; by convention, that of pings is beside it.
func (c Cloud) PingTarget() (PingTarget, error) {
	target, err := c.URL()
	if err != nil {
		return PingTarget{}, err
	}
	return pingTarget(target, c.IsXMLRPC()), nil
}

// ParsePingTarget parses the URL of a cloud from the user: of pings or registration,
// http(s)://host/RPC2 or xmlrpc://host/path for XML-RPC, or only the host.
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
		u.Path, u.RawPath = "/RPC2", "" // the path of the walkthrough, and of all clouds since
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

// Ping notifies a cloud of an update of a feed ("Pinging via REST", "Pinging via XML-RPC"),
// and returns its answer in one line. The feed must be saved before, because the cloud
// reads it.
func Ping(ctx context.Context, c *fetch.Client, t PingTarget, feed string) (string, error) {
	if !t.XMLRPC {
		return postForm(ctx, c, t.URLs, t.Chosen, false, form("url", feed))
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

// call is [Call], but returns a RefusedError for a fault, and for a struct that reports a
// failure.
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

// Save stores a feed document in a cloud, which notifies its subscribers ("Saving the feed
// through the cloud"). It returns the public URL of the feed, in one line. url is the
// XML-RPC URL of the cloud; for chosen see [fetch.Post]. The password is never sent to
// another server: a redirect is an error.
func Save(ctx context.Context, c *fetch.Client, url string, chosen bool, user, password, document string) (string,
	error) {
	v, err := call(ctx, c, fetch.Post{URL: url, Chosen: chosen, Secret: true}, "rssCloud.saveRss", user, password,
		document)
	if err != nil {
		return "", err
	}
	if v.Text == "" {
		if v.Text = v.Members["url"].Text; v.Text == "" {
			return "", &fetch.RefusedError{URL: url, Message: "the answer lacks the URL of the feed"}
		}
	}
	return termsafe.Brief(v.Text), nil
}
