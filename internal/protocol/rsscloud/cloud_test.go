package rsscloud

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/text/feedurl"
)

// A cloud reads the same request that an aggregator sent, by either protocol.
func TestRequestIsReadAsItWasSent(t *testing.T) {
	feeds := []string{"http://a.example/?a=1&b=2#c", "http://b.example/ä+ü%20", "http://c.example/"}
	for _, back := range []*url.URL{
		{Scheme: "http", Host: "me.example:5337", Path: "/x/0123"}, {Scheme: "https", Host: "192.0.2.1", Path: "/"}, {Scheme: "http", Host: "[2001:db8::1]", Path: "/x"},
	} {
		protocol := HTTPPost
		if back.Scheme == "https" {
			protocol = HTTPSPost
		}
		port, err := strconv.Atoi(feedurl.Port(back))
		if err != nil {
			t.Fatal(err)
		}
		form := registration(back, protocol, feeds, false)
		q, err := ReadRequest(loose(form), 3)
		want := Request{Port: port, Path: back.Path, Protocol: protocol, Domain: back.Hostname(), URLs: feeds}
		if err != nil || !reflect.DeepEqual(q, want) {
			t.Errorf("%s\n got %+v, %v\nwant %+v", form, q, err, want)
		}
		u, err := url.Parse(q.Callback(netip.Addr{}))
		if err != nil || u.Scheme != back.Scheme || u.Hostname() != back.Hostname() || feedurl.Port(u) != feedurl.Port(back) || u.Path != back.Path {
			t.Errorf("%+v: %s, %v", back, u, err)
		}
		m, err := Decode(EncodeCall("rssCloud.pleaseNotify", NotifyProcedure, port, back.Path, XMLRPC, feeds, back.Hostname()))
		if err != nil {
			t.Fatal(err)
		}
		q, err = RequestOf(m.Params, 3)
		want.Protocol, want.Procedure = XMLRPC, NotifyProcedure
		if err != nil || !reflect.DeepEqual(q, want) {
			t.Errorf(" got %+v, %v\nwant %+v", q, err, want)
		}
		if _, err := RequestOf(m.Params, 2); err == nil {
			t.Error("three feeds are accepted, but the maximum is two")
		}
	}
	q := Request{Port: 8080, Path: "/x", Protocol: HTTPPost}
	if got := q.Callback(netip.MustParseAddr("fe80::1%eth0")); got != "http://[fe80::1]:8080/x" {
		t.Error(got)
	}
}

// An aggregator reads the same notification that a cloud sent.
func TestNotificationIsReadAsItWasSent(t *testing.T) {
	const feed = "http://a.example/?a=1&b=2"
	var got []Notification
	p := serve(t, func(w http.ResponseWriter, r request) {
		_, query, _ := strings.Cut(r.uri, "?")
		if strings.Contains(query, "challenge") {
			text, which, ok := Challenge(query, []string{feed})
			if !ok || which != feed {
				t.Errorf("got %s: %q; want ok and which == feed", query, which)
			}
			io.WriteString(w, text)
			return
		}
		n, err := ReadNotification(r.contentType, query, []byte(r.body))
		if err != nil {
			t.Error(err)
		}
		got = append(got, n)
		if n.XMLRPC {
			w.Write(EncodeResponse(true))
		}
	})
	c := client(t)
	for _, protocol := range []string{HTTPPost, XMLRPC} {
		if err := Notify(context.Background(), c, p.URL+"/cb", protocol, NotifyProcedure, feed, true); err != nil {
			t.Error(err)
		}
	}
	if len(got) != 2 || got[0].XMLRPC || !got[1].XMLRPC || !slices.Equal(got[0].URLs, []string{feed}) || !slices.Equal(got[1].URLs, []string{feed}) {
		t.Errorf("%+v", got)
	}
	for _, path := range []string{"/cb", "/cb?x=y"} {
		if err := Verify(context.Background(), c, p.URL+path, feed, "0123"); err != nil {
			t.Error(err)
		}
	}
}

// The answers of a cloud, as an aggregator reads them.
func TestResultIsReadAsItWasSent(t *testing.T) {
	for _, msg := range []string{"ok", `a "quoted" & <tagged> 'text'`} {
		for _, success := range []bool{true, false} {
			got, err := verdict(&fetch.Answer{Status: 200, Body: EncodeResult("notifyResult", success, msg)}, true)
			if got != msg || (err == nil) != success {
				t.Errorf("got %q, %v; want got == msg and (err == nil) == success", got, err)
			}
		}
	}
}

func FuzzReadRequest(f *testing.F) {
	for _, s := range []string{"port=80&path=/x&protocol=http-post&url1=http://a.example/", "url=%zz&URL2=b&url2=b&domain=[::1]&port=0", "port=1&path=//x&protocol=xml-rpc&notifyProcedure=a&url=x&domain=a.b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		q, err := ReadRequest(loose(body), 20)
		if err != nil {
			return
		}
		u, err := url.Parse(q.Callback(netip.MustParseAddr("192.0.2.1")))
		if err != nil || len(q.URLs) == 0 || len(q.URLs) > 20 || q.Port < 1 || q.Port > 65535 || u.User != nil {
			t.Fatalf("%q: %+v, %v", body, q, err)
		}
		if want := strings.Trim(q.Domain, "[]"); want == "" && u.Hostname() != "192.0.2.1" || want != "" && u.Hostname() != want {
			t.Fatalf("%q: the host of the callback is %s", body, u.Hostname())
		}
	})
}

// The error names a parameter of the wrong type; it is not read as empty.
func TestRequestByXMLRPCWithWrongTypes(t *testing.T) {
	text := func(s string) Value { return Value{Text: s} }
	sound := []Value{text("n"), text("5337"), text("/cb"), text("http-post"), {IsList: true, List: []Value{text("http://a.example/")}}, text("b.example")}
	for i, name := range []string{"notifyProcedure", "port", "path", "protocol", "urlList", "domain"} {
		for _, wrong := range []Value{{IsList: true, List: []Value{text("/cb")}}, {Members: map[string]Value{}}} {
			params := append([]Value(nil), sound...)
			if params[i] = wrong; name == "urlList" && wrong.IsList {
				continue
			}
			if _, err := RequestOf(params, 20); err == nil || !strings.Contains(err.Error(), name+" has the wrong type") {
				t.Errorf("got %s: %v; want err != nil and strings.Contains(err.Error(), name+\" has the wrong type\")", name, err)
			}
		}
	}
	for _, none := range []string{"", "0", "false"} {
		sound[5] = text(none)
		if r, err := RequestOf(sound, 20); err != nil || r.Domain != "" {
			t.Errorf("%q: domain %q, %v", none, r.Domain, err)
		}
	}
}
