package feedsync

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func at(t *testing.T, s string) time.Time {
	t.Helper()
	when, ok := ParseDate(s)
	if !ok {
		t.Fatalf("ParseDate(%q) reports an invalid date", s)
	}
	return when
}

func rss(items string) string {
	return `<rss version="2.0" xmlns:sx="` + Namespace + `"><channel><title>t</title>` + "\n" + items + "</channel></rss>"
}

func outlines(body string) string {
	return `<opml version="2.0" xmlns:sx="` + Namespace + `"><head><title>t</title></head><body>` + "\n" + body + "</body></opml>"
}

func parse(t testing.TB, s string) *Document {
	t.Helper()
	d, err := Parse([]byte(s))
	if err != nil {
		t.Fatalf("Parse(%q): %v", s, err)
	}
	return d
}

// c14n returns a document as canonical XML, by encoding/xml and without the code under test.
func c14n(t testing.TB, doc string) string {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(doc))
	var b strings.Builder
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatalf("%v in %s", err, doc)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			var attrs []string
			for _, a := range tok.Attr {
				if a.Name.Space != "xmlns" && a.Name.Local != "xmlns" {
					attrs = append(attrs, fmt.Sprintf("{%s}%s=%q", a.Name.Space, a.Name.Local, a.Value))
				}
			}
			slices.Sort(attrs)
			fmt.Fprintf(&b, "<{%s}%s %s>\n", tok.Name.Space, tok.Name.Local, strings.Join(attrs, " "))
		case xml.EndElement:
			b.WriteString("</>\n")
		case xml.CharData:
			if s := strings.TrimSpace(string(tok)); s != "" {
				b.WriteString(s + "\n")
			}
		}
	}
}

const description = "<item><description>This is a test item</description></item>"

// The examples of sections 4.1, 4.2 and 5.2, unchanged.
const (
	exampleCreated = `<item>
<description>This is a test item</description>
<sx:sync id="0a7903db47fb0ae8" version="1">
<sx:history when="Sat, 21 May 2005 09:43:33 GMT" by="REO1750"/>
</sx:sync>
</item>`
	exampleUpdated = `<item>
<description>This is a test item</description>
<sx:sync id="0a7903db47fb0ae8" version="4">
<sx:history when="Tue, 24 May 2005 09:43:33 GMT" by="REO1750">
<sx:update when="Mon, 23 May 2005 09:43:33 GMT" by="REO1750" />
<sx:update when="Sun, 22 May 2005 09:43:33 GMT" by="REO1750" />
<sx:update when="Sat, 21 May 2005 09:43:33 GMT" by="REO1750" />
</sx:history>
</sx:sync>
</item>`
	exampleTruncated = `<item>
<description>This is a test item</description>
<sx:sync id="0a7903db47fb0ae8" version="6">
<sx:history when="Thu, 26 May 2005 09:43:33 GMT" by="REO1750">
<sx:update when="Wed, 25 May 2005 09:43:33 GMT" by="REO1750" />
<sx:update when="Tue, 24 May 2005 09:43:33 GMT" by="REO1750" />
<sx:update when="Mon, 23 May 2005 09:43:33 GMT" by="REO1750" />
</sx:history>
</sx:sync>
</item>`
	exampleConflict = `<item>
<description>This is a test item</description>
<sx:sync id="0a7903db47fb0ae8" version="4" conflict="true">
<sx:history when="Tue, 24 May 2005 09:43:33 GMT" by="REO1750">
<sx:update when="Mon, 23 May 2005 09:43:33 GMT" by="REO1750" />
</sx:history>
<sx:conflicts>
<sx:conflict when="Tue, 24 May 2005 08:00:11 GMT" by="GPM7383" version="4">
<!--conflict data here -->
</sx:conflict>
</sx:conflicts>
</sx:sync>
</item>`
	exampleSharing = `<rss version="2.0" xmlns:sx="https://www.microsoft.com/schemas/rss/sse"><channel>
<sx:sharing
since="Tue, 1 Nov 2004 09:43:33 GMT"
until="Fri, 1 Mar 2005 09:43:33 GMT"
version="0.91" >
<sx:related link="http://x.com/all.xml" type="complete" />
<sx:related link="http://y.net/B.xml" type="aggregated" 
title="Family Contacts (Dad's Copy)" />
<sx:related link="http://y.net/C.xml" type="aggregated" 
title="Family Contacts (Suzy's Copy)" />
</sx:sharing>
</channel></rss>`
)

// document returns a new document with items.
func document(t *testing.T, items ...*Item) string {
	t.Helper()
	d := New(RSS, "t", "", "")
	d.Append(items...)
	return string(d.Bytes())
}

// sameItem compares the item of a document with the example by canonical XML.
func sameItem(t *testing.T, it *Item, example string) {
	t.Helper()
	got := c14n(t, document(t, it))
	_, got, _ = strings.Cut(got, "<{}item")
	want := c14n(t, rss(example))
	_, want, _ = strings.Cut(want, "<{}item")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestExamples(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2005, 5, n, 9, 43, 33, 0, time.UTC) }
	it, err := create("0a7903db47fb0ae8", []byte(description), day(21), "REO1750")
	if err != nil {
		t.Fatal(err)
	}
	sameItem(t, it, exampleCreated)
	update := func(n int) {
		t.Helper()
		if it, err = updated(it, nil, false, day(n), "REO1750"); err != nil {
			t.Fatal(err)
		}
	}
	for n := 22; n <= 24; n++ {
		update(n)
	}
	sameItem(t, it, exampleUpdated)
	for n := 25; n <= 26; n++ {
		update(n)
	}
	// The implementation of the example keeps three updates.
	it.History = it.History[:4]
	sameItem(t, it, exampleTruncated)

	for name, example := range map[string]string{"created": exampleCreated, "updated": exampleUpdated, "truncated": exampleTruncated, "conflict": exampleConflict} {
		d := parse(t, rss(example))
		if len(d.Problems) > 0 || d.Len() != 1 {
			t.Errorf("%s: %d items, %v", name, d.Len(), d.Problems)
		}
		if got := c14n(t, string(d.Bytes())); got != c14n(t, rss(example)) {
			t.Errorf("%s is written as\n%s", name, d.Bytes())
		}
	}

	// In the example of a conflict, GPM7383 and REO1750 both edit version 3; GPM7383 is earlier.
	base := parse(t, rss(strings.NewReplacer(`version="4"`, `version="3"`, "Tue, 24", "Mon, 23").Replace(
		`<item><description>This is a test item</description><sx:sync id="0a7903db47fb0ae8" version="4"><sx:history when="Tue, 24 May 2005 09:43:33 GMT" by="REO1750"/></sx:sync></item>`))).Item("0a7903db47fb0ae8")
	mine, _ := updated(base, nil, false, day(24), "REO1750")
	theirs, _ := updated(base, []byte("<item><description>another</description></item>"), false, at(t, "Tue, 24 May 2005 08:00:11 GMT"), "GPM7383")
	out := Merge(mine, theirs, Rules{})
	if !out.Detected || out.Incoming {
		t.Fatalf("%+v", out)
	}
	got := c14n(t, document(t, out.Item))
	want := c14n(t, rss(exampleConflict))
	for _, part := range []string{"{}sync", "sync", "history", "conflict"} {
		line := func(s string) string {
			_, s, _ = strings.Cut(s, "<{"+Namespace+"}"+part+" ")
			s, _, _ = strings.Cut(s, "\n")
			return s
		}
		if line(got) != line(want) {
			t.Errorf("%s: got %s, want %s", part, line(got), line(want))
		}
	}
}

func TestSharingExample(t *testing.T) {
	d := parse(t, exampleSharing)
	s := d.Sharing
	if s == nil || len(d.Problems) > 0 || len(s.Related) != 3 {
		t.Fatalf("%+v, %v", s, d.Problems)
	}
	if want := time.Date(2004, 11, 1, 9, 43, 33, 0, time.UTC); s.Since != want || s.Version != "0.91" {
		t.Errorf("since %v, version %s", s.Since, s.Version)
	}
	if s.Related[0].Type != "complete" || s.Related[1].Title != "Family Contacts (Dad's Copy)" {
		t.Errorf("%+v", s.Related)
	}
	if got := c14n(t, string(d.Bytes())); got != c14n(t, exampleSharing) {
		t.Errorf("the sharing element is written as\n%s", got)
	}
	d.SetSharing(s)
	// The days of the week in the example are wrong.
	want := strings.NewReplacer("Tue, 1 Nov", "Mon, 01 Nov", "Fri, 1 Mar", "Tue, 01 Mar").Replace(exampleSharing)
	if got := c14n(t, string(d.Bytes())); got != c14n(t, want) {
		t.Errorf("after SetSharing it is written as\n%s", got)
	}
}

// lines returns the lines of canonical XML, sorted: foreign elements are written before items.
func lines(t *testing.T, doc string) []string {
	t.Helper()
	l := strings.Split(strings.ReplaceAll(c14n(t, doc), namespaceHTTP, Namespace), "\n")
	slices.Sort(l)
	return l
}

// Foreign elements and attributes keep their names and contents at every place. A written
// document that is read and written again has the same bytes.
func TestForeignElementsStay(t *testing.T) {
	for _, doc := range []string{
		"<?xml version='1.0'?>\r\n<!-- a --><!DOCTYPE opml SYSTEM \"x\"><opml a='1' xmlns:sx='" + Namespace + "' xmlns:q='urn:q'><head q:h=''><!-- h --><sx:sharing version='0.91' q:s='1'><q:t/></sx:sharing><x/></head>\n<q:beside/><body q:a='&amp;\"'>text <!-- c -->\n" +
			"<outline text='plain'><outline  text = 'A' ><sx:sync version='2' id='a' q:new='1'><!-- s --><sx:history by='x'/><q:more>&#65;</q:more></sx:sync ><q:b/> mixed <outline text='B'><sx:sync id='b' version='1'><sx:history by='x'/></sx:sync></outline></outline></outline>" +
			"<outline/><outline></outline ></body><!-- z --></opml>\n<!-- end -->",
		`<rss version="2.0" xmlns:s="` + namespaceHTTP + `"><channel><item><title><![CDATA[a & b]]></title><s:sync id="a" version="1"><s:history by="b"/></s:sync><?php x?></item><item>none</item><s:sharing version="0.91"/></channel></rss>`,
		rss(`<item xml:lang="de"><q:deep xmlns:q="urn:q" xmlns:r="urn:r" r:a="1" q:a="2"><b xmlns="urn:b" a="3">x</b></q:deep><sx:sync id="a" version="1"><sx:history by="x"/></sx:sync></item>`),
	} {
		d := parse(t, doc)
		text := string(d.Bytes())
		if !slices.Equal(lines(t, text), lines(t, doc)) {
			t.Errorf("%s\nis written as\n%s", doc, text)
		}
		if again := string(parse(t, text).Bytes()); again != text {
			t.Errorf("%s\nis written again as\n%s", text, again)
		}
		if d.Len() == 0 || len(d.Problems) > 0 {
			t.Errorf("%d items, %v", d.Len(), d.Problems)
		}
	}
	// The namespace of the root is treated as no namespace, because RSS has none.
	d := parse(t, `<rss version="2.0" xmlns="http://backend.userland.com/rss2" xmlns:sx="`+Namespace+`"><channel><item><title>A</title><sx:sync id="a" version="1"><sx:history by="b"/></sx:sync></item></channel></rss>`)
	if titleOf(d.Item("a")) != "A" {
		t.Errorf("%s", d.Bytes())
	}
}

// Contents that differ only in prefixes, quotes and white space become the same bytes.
func TestSameBytes(t *testing.T) {
	var all []string
	for _, c := range []string{
		`<item xmlns:a="urn:1" xmlns:b="urn:2" b:y="1" x="2"><a:c b:d="3"/><title>A &amp; B</title></item>`,
		"<item xmlns:b='urn:1'\n xmlns:a='urn:2' x='2' a:y='1'>\n <b:c a:d='3'></b:c><!-- c -->\n <title>A <![CDATA[&]]> B</title>\n</item>",
	} {
		it, err := create("a", []byte(c), day0, "x")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, document(t, it))
	}
	if all[0] != all[1] {
		t.Errorf("%s\nand\n%s", all[0], all[1])
	}
}

// Endpoints pass on unknown elements and attributes of another endpoint, with their names
// and contents, even if the prefixes of the documents differ.
func TestUnknownSurvives(t *testing.T) {
	theirs := `<rss version="2.0" xmlns:z="` + Namespace + `" xmlns:q="urn:theirs" xmlns:sx="urn:evil"><channel><item q:attr="1"><title>T</title>` +
		`<q:deep  a='1'><sx:sync/><!-- comment --><b xmlns='urn:b'>x &#65; <![CDATA[<]]></b></q:deep>` +
		`<z:sync id="a" version="2" q:later="yes"><z:history by="x"><z:update by="y"/></z:history><q:inside/></z:sync></item></channel></rss>`
	kept := []string{"<{urn:theirs}deep {}a=\"1\">\n<{urn:evil}sync >\n</>\n<{urn:b}b >\nx A <\n</>\n</>\n", "<{urn:theirs}inside >\n", `{urn:theirs}later="yes"`, `{urn:theirs}attr="1"`}
	check := func(text string) {
		t.Helper()
		for _, k := range kept {
			if !strings.Contains(c14n(t, text), k) {
				t.Fatalf("lost %s: %s", k, text)
			}
		}
	}
	before := ""
	for range 3 {
		d := New(RSS, "ours", "", "")
		if c := d.Merge(parse(t, theirs), Rules{}); len(c) != 1 {
			t.Fatalf("changed %d", len(c))
		}
		theirs = string(d.Bytes())
		check(theirs)
		if before != "" && theirs != before {
			t.Errorf("%s\nis passed on as\n%s", before, theirs)
		}
		before = theirs
	}
	// An edit of the item keeps them, too.
	it := parse(t, theirs).Item("a")
	next, err := updated(it, nil, false, time.Now(), "me")
	if err != nil {
		t.Fatal(err)
	}
	text := document(t, next)
	check(text)
	again := parse(t, text).Item("a")
	if again == nil || again.Version != 3 || Canonical(again.Content) != Canonical(it.Content) {
		t.Errorf("read again: %+v", again)
	}
}

// Each row names a rule of section 2, or of RFC 2141 and RFC 822, to which it refers, and
// breaks it.
func TestInvalid(t *testing.T) {
	sync := func(attrs, history string) string {
		return "<item><sx:sync " + attrs + ">" + history + "</sx:sync></item>"
	}
	const good = `<sx:history by="x"/>`
	for name, c := range map[string]struct{ item, reason string }{
		"2.3 id is required":                      {sync(`version="1"`, good), "has no id"},
		"2.3 id is not empty":                     {sync(`id="" version="1"`, good), "has no id"},
		"1.2, 2.3 ids MUST conform to NSS: space": {sync(`id="a b" version="1"`, good), "not a namespace specific string"},
		"NSS: slash":                              {sync(`id="a/b" version="1"`, good), "not a namespace specific string"},
		"NSS: bad escape":                         {sync(`id="a%2" version="1"`, good), "not a namespace specific string"},
		"NSS: %00":                                {sync(`id="a%00" version="1"`, good), "not a namespace specific string"},
		"2.3 version is required":                 {sync(`id="a"`, good), "has no version"},
		"2.3 version starts at 1":                 {sync(`id="a" version="0"`, good), `version is "0"`},
		"version: negative":                       {sync(`id="a" version="-1"`, good), `version is "-1"`},
		"version: 2^64":                           {sync(`id="a" version="18446744073709551616"`, good), "version is"},
		"version: 2^53+1":                         {sync(`id="a" version="9007199254740993"`, good), "version is"},
		"version: signed":                         {sync(`id="a" version="+1"`, good), `version is "+1"`},
		"2.3 deleted: other values are invalid":   {sync(`id="a" version="1" deleted="maybe"`, good), "deleted is"},
		"deleted: case":                           {sync(`id="a" version="1" deleted="TRUE"`, good), "deleted is"},
		"2.3 conflict: other values are invalid":  {sync(`id="a" version="1" conflict="1"`, good), "conflict is"},
		"2.4 sync MUST contain a history":         {sync(`id="a" version="1"`, ""), "no sx:history"},
		"2.4 MUST have when or by":                {sync(`id="a" version="1"`, `<sx:history/>`), "neither when nor by"},
		"empty is absent":                         {sync(`id="a" version="1"`, `<sx:history when="" by=""/>`), "neither when nor by"},
		"2.5 update MUST have when or by":         {sync(`id="a" version="2"`, `<sx:history by="x"><sx:update/></sx:history>`), "sx:update has neither"},
		"1.1 dates MUST be RFC 822":               {sync(`id="a" version="1"`, `<sx:history when="2005-05-21T09:43:33Z"/>`), "not in the form of RFC 822"},
		"day of the month":                        {sync(`id="a" version="1"`, `<sx:history when="31 Feb 2005 09:43:33 GMT"/>`), "not in the form of RFC 822"},
		"by is an NSS":                            {sync(`id="a" version="1"`, `<sx:history by="a b"/>`), "not a namespace specific string"},
		"two histories":                           {sync(`id="a" version="1"`, good+good), "two sx:history"},
		"two syncs":                               {`<item><sx:sync id="a" version="1">` + good + `</sx:sync><sx:sync id="b" version="1">` + good + `</sx:sync></item>`, "two sx:sync"},
		"5.2 conflict has a version":              {sync(`id="a" version="1"`, good+`<sx:conflicts><sx:conflict by="x"/></sx:conflicts>`), "an sx:conflict has the version"},
		"5.2 conflict MUST have when or by":       {sync(`id="a" version="1"`, good+`<sx:conflicts><sx:conflict version="1"/></sx:conflicts>`), "neither when nor by"},
		"2.3 id is unique":                        {sync(`id="ok" version="1"`, `<sx:history by="b"/>`), "same id"},
	} {
		t.Run(name, func(t *testing.T) {
			doc := rss("<item>plain</item>\n" + c.item + "\n" + sync(`id="ok" version="2"`, good))
			d := parse(t, doc)
			if len(d.Problems) != 1 || !strings.Contains(d.Problems[0].Reason, c.reason) || d.Problems[0].Line != 3 || d.Problems[0].Warning {
				t.Errorf("problems: %v, want one in line 3 with %q", d.Problems, c.reason)
			}
			if d.Len() != 1 || d.Item("ok") == nil || d.Item("ok").Version != 2 {
				t.Errorf("the valid item is not read: %d items", d.Len())
			}
			if !slices.Equal(lines(t, string(d.Bytes())), lines(t, doc)) {
				t.Errorf("the invalid item is not written: %s", d.Bytes())
			}
		})
	}
}

// Values at the limits are valid.
func TestJustValid(t *testing.T) {
	for _, c := range []struct {
		attrs             string
		version           uint64
		deleted, conflict bool
	}{
		{`id="a" version="1"`, 1, false, false},
		{`id="a" version="9007199254740992"`, MaxVersion, false, false},
		{`id="a" version="1" deleted="" conflict=""`, 1, false, false},
		{`id="a" version="1" deleted="false" conflict="false"`, 1, false, false},
		{`id="a" version="1" deleted="true" conflict="true"`, 1, true, true},
	} {
		for _, namespace := range []string{Namespace, namespaceHTTP} {
			doc := strings.Replace(rss("<item><sx:sync "+c.attrs+`><sx:history by="x"/></sx:sync></item>`), Namespace, namespace, 1)
			d := parse(t, doc)
			it := d.Item("a")
			if it == nil || it.Version != c.version || it.Deleted != c.deleted || it.Conflict != c.conflict || len(d.Problems) > 0 {
				t.Errorf("%s: %+v, %v", c.attrs, it, d.Problems)
			}
		}
	}
	// Documents are written with the https namespace.
	if text := string(New(OPML, "t", "", "").Bytes()); !strings.Contains(text, `"`+Namespace+`"`) || strings.Contains(text, namespaceHTTP) {
		t.Error(text)
	}
}

func TestInvalidSharing(t *testing.T) {
	for name, c := range map[string]struct {
		sharing, reason string
		warning         bool
		related         int
	}{
		"2.1 version is required":     {`<sx:sharing since=""/>`, "no version", true, 0},
		"another version":             {`<sx:sharing version="0.93"/>`, `version "0.93"`, true, 0},
		"since after until":           {`<sx:sharing version="0.91" since="Sat, 21 May 2005 09:43:33 GMT" until="Fri, 20 May 2005 09:43:33 GMT"/>`, "since is after until", false, 0},
		"an invalid date":             {`<sx:sharing version="0.91" since="yesterday"/>`, "not in the form of RFC 822", false, 0},
		"window":                      {`<sx:sharing version="0.91" window="-3"/>`, "not a number of days", false, 0},
		"2.2 link is required":        {`<sx:sharing version="0.91"><sx:related type="complete"/><sx:related link="x" type="complete"/></sx:sharing>`, "no link", false, 1},
		"2.2 type is required":        {`<sx:sharing version="0.91"><sx:related link="x"/></sx:sharing>`, "no type", false, 0},
		"2.2 type is one of two":      {`<sx:sharing version="0.91"><sx:related link="x" type="partial"/></sx:sharing>`, "neither complete nor aggregated", false, 0},
		"a second one":                {`<sx:sharing version="0.91"/><sx:sharing version="0.91"/>`, "second", false, 0},
		"5.1 conflicts has one, MUST": {`<item><sx:sync id="b" version="1"><sx:history by="x"/><sx:conflicts/></sx:sync></item>`, "no sx:conflict", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := parse(t, rss(c.sharing+`<item><sx:sync id="a" version="1"><sx:history by="x"/></sx:sync></item>`))
			if len(d.Problems) != 1 || !strings.Contains(d.Problems[0].Reason, c.reason) || d.Problems[0].Warning != c.warning || d.Problems[0].Line != 2 {
				t.Errorf("problems: %v", d.Problems)
			}
			if d.Item("a") == nil {
				t.Error("the item is not read")
			}
			if d.Sharing != nil && (len(d.Sharing.Related) != c.related || !d.Sharing.Since.IsZero()) {
				t.Errorf("%+v", d.Sharing)
			}
		})
	}
	// An sx:sharing beside the channel is read, with a warning.
	d := parse(t, `<rss xmlns:sx="`+Namespace+`"><sx:sharing version="0.91" until="Fri, 20 May 2005 09:43:33 GMT"/><channel/></rss>`)
	if len(d.Problems) != 1 || !d.Problems[0].Warning || d.Sharing == nil || d.Sharing.Until.IsZero() {
		t.Errorf("%v, %+v", d.Problems, d.Sharing)
	}
}

func TestNotShared(t *testing.T) {
	for doc, reason := range map[string]string{
		`<rss xmlns:sx="http://feedsync.org/2007/feedsync"><channel/></rss>`:                        "FeedSync 1.0",
		rss(`<item><sx:sync id="a" updates="3"><sx:history sequence="3" by="x"/></sx:sync></item>`): "FeedSync 1.0",
		rss(`<item><sx:sync id="a" version="1"><sx:history sequence="3" by="x"/></sx:sync></item>`): "FeedSync 1.0",
		`<feed xmlns="http://www.w3.org/2005/Atom"/>`:                                               "neither RSS nor OPML",
		`<rss/>`:                                     "no <channel>",
		`<opml><head/></opml>`:                       "no <body>",
		rss(`<item>`):                                "line 2: element <item> closed by </channel>",
		rss("<item>")[:100]:                          "it ends within",
		``:                                           "no element",
		rss(`<x:y/>`):                                "the prefix x: is not declared",
		`<!DOCTYPE rss [<!ENTITY a "b">]><rss/>`:     "DOCTYPE has declarations",
		rss("\n<title>&nbsp;</title>"):               "line 3: invalid character entity &nbsp;",
		"<rss><channel>\x01</channel></rss>":         "U+0001",
		"<rss><channel>\xff</channel></rss>":         "invalid UTF-8",
		`<rss a="1" a="2"><channel/></rss>`:          "twice",
		strings.Repeat("<rss>", 1000):                "it ends within",
		`<rss><channel/></rss><rss><channel/></rss>`: "second root",
	} {
		if _, err := Parse([]byte(doc)); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("Parse(%.80q): %v, want %q", doc, err, reason)
		}
	}
}

func TestDates(t *testing.T) {
	want := time.Date(2005, 5, 21, 9, 43, 33, 0, time.UTC)
	for _, s := range []string{
		"Sat, 21 May 2005 09:43:33 GMT", "Mon, 21 May 2005 09:43:33 GMT", "21 May 2005 09:43:33 GMT", "sat, 21 MAY 2005 9:43:33 gmt",
		"Sat, 21 May 2005 11:43:33 +0200", "Sat, 21 May 2005 05:43:33 EDT", "Sat, 21 May 05 09:43:33 UT", "  Saturday, 21  May 2005\t09:43:33 Z ",
		"Sat,21 May 2005 09:43:33 GMT",
	} {
		if got, ok := ParseDate(s); !ok || got != want {
			t.Errorf("ParseDate(%q) = %v, %v", s, got, ok)
		}
	}
	if got := FormatDate(want); got != "Sat, 21 May 2005 09:43:33 GMT" {
		t.Errorf("1.1: the date MUST be in GMT, with a year of four digits: %s", got)
	}
	for _, s := range []string{"", "Sat", "21 May 2005", "Sat, 21 May 2005 09:43:33", "Sat, 32 May 2005 09:43:33 GMT", "21 May 005 09:43:33 GMT", "21 May 2005 24:43:33 GMT", "Foo, 21 May 2005 09:43:33 GMT", "21 May 2005 09:43:33 +2460", "1 Jan 0001 00:00:00 +0100"} {
		if got, ok := ParseDate(s); ok {
			t.Errorf("ParseDate(%q) = %v", s, got)
		}
	}
}

func TestCharset(t *testing.T) {
	doc := "<?xml version='1.0' encoding='iso-8859-1'?>" + rss("<item><title>M\xfcnchen</title><sx:sync id='a' version='1'><sx:history by='x'/></sx:sync></item>")
	d := parse(t, doc)
	if title := titleOf(d.Item("a")); title != "München" {
		t.Errorf("title %q", title)
	}
	if !bytes.HasPrefix(d.Bytes(), []byte(`<?xml version="1.0" encoding="UTF-8"?>`)) {
		t.Errorf("%s", d.Bytes())
	}
}

// A document with very deep outlines or very many problems is read in bounded memory, and
// its valid items are returned.
func TestHugeDocuments(t *testing.T) {
	good := `<outline><sx:sync id="a" version="1"><sx:history by="x"/></sx:sync></outline>`
	n, size := 100_000, 4_000_000
	if os.Getenv("LEKTOR_SHARE_RUNS") != "" {
		n, size = 1_000_000, 100_000_000
	}
	d := parse(t, outlines(good+strings.Repeat("<outline>", n)+good+strings.Repeat("</outline>", n)))
	if d.Item("a") == nil || len(d.Problems) != 1 || !strings.Contains(d.Problems[0].Reason, "within more than") {
		t.Errorf("%v", d.Problems)
	}
	d = nil
	var b strings.Builder
	b.WriteString(`<rss xmlns:sx="` + Namespace + `"><channel>`)
	bad := "<item><title>" + strings.Repeat("x", 400) + "</title><sx:sync id='' version='1'/></item>\n"
	for b.Len() < size {
		b.WriteString(bad)
	}
	b.WriteString(`<item><sx:sync id="a" version="1"><sx:history by="x"/></sx:sync></item></channel></rss>`)
	data := []byte(b.String())
	b.Reset()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	d, err := Parse(data)
	runtime.ReadMemStats(&after)
	if err != nil || d.Item("a") == nil || len(d.Problems) != maxProblems || d.MoreProblems == 0 {
		t.Fatalf("%v, %d problems and %d", err, len(d.Problems), d.MoreProblems)
	}
	if last := d.Problems[maxProblems-1]; last.Line != maxProblems {
		t.Errorf("the last problem is in line %d", last.Line)
	}
	if grown := after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc); grown > 64<<20 {
		t.Errorf("the document takes %d MiB", grown>>20)
	}
}
