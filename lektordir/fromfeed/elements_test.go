package fromfeed_test

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/lektordir"
	"github.com/lektordir/lektor/lektordir/fromfeed"
)

// TestElements: the elements of podcasts become lines of extras, and come back as they were.
func TestElements(t *testing.T) {
	document, err := os.ReadFile("../../feedconv/testdata/golden/podcast-namespace.xml")
	if err != nil {
		t.Fatal(err)
	}
	feed, err := feedconv.ParseBytes(document, feedconv.Options{URL: "https://birds.example/feed"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	show := func(list lektordir.Elements) {
		for name, data := range (&lektordir.Entry{Elements: list}).Files() {
			if name == "extras" {
				got = append(got, string(data))
			}
		}
	}
	show(fromfeed.Feed("x", feed).Elements)
	for i := range feed.Entries {
		show(fromfeed.Entry(&feed.Entries[i]).Elements)
	}
	const want = `element	podcast:guid	0d0f0e6a-4f3e-5b1a-9a0e-1c5a0f8f1a11
element	podcast:medium	podcast
element	podcast:locked	yes	owner=wren@birds.example
element	podcast:funding	Buy us seed	url=https://birds.example/give
element	podcast:podroll
element	podcast:podroll/podcast:remoteItem		feedGuid=917393e3-1b1e-5cef-ace4-edaa54e1f810	feedUrl=https://frogs.example/feed
element	itunes:explicit	false
element	itunes:type	episodic

element	podcast:liveItem		status=pending	start=2026-05-01T18:00:00Z	end=2026-05-01T20:00:00Z
element	podcast:contentLink	Watch	href=https://video.example/birds
element	podcast:chat		server=irc.example	protocol=irc	space=#birds

element	itunes:episodeType	bonus
element	itunes:explicit	yes
element	podcast:season	2	name=At night
element	podcast:episode	3	display=Ep. 3½
element	podcast:transcript		url=https://birds.example/3.vtt	type=text/vtt	language=en	rel=captions
element	podcast:transcript		url=https://birds.example/3.html	type=text/html
element	podcast:chapters		url=https://birds.example/3.json	type=application/json+chapters
element	podcast:soundbite	The hoot	startTime=33.833	duration=60.0
element	podcast:person	Wren	href=https://birds.example/wren	img=https://birds.example/wren.jpg
element	podcast:person	Robin & Co	role=guest	group=cast
element	podcast:alternateEnclosure		type=audio/opus	length=5400000	bitrate=16000	title=Low	lang=en
element	podcast:alternateEnclosure/podcast:source		uri=https://birds.example/3-low.opus
element	podcast:alternateEnclosure/podcast:source		uri=ipfs://bafy3	contentType=audio/opus
element	podcast:alternateEnclosure/podcast:integrity		type=sri	value=sha384-ExVqijgYHm15PqQqdXfW95x
element	podcast:socialInteract		protocol=activitypub	uri=https://social.example/@birds/3	accountId=@birds
element	podcast:license	cc-by-4.0	url=https://creativecommons.org/licenses/by/4.0/
`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s", text)
	}
	for i := range feed.Entries {
		e := &feed.Entries[i]
		attributes, extensions := fromfeed.Extensions(fromfeed.Entry(e).Elements)
		kept := e.Extensions
		if i == 1 { // the last is podcast:value
			kept = kept[:len(kept)-1]
		}
		if !reflect.DeepEqual(attributes, e.Attributes) || !reflect.DeepEqual(extensions, kept) {
			t.Errorf("entry %d:\n got %+v %+v\nwant %+v %+v", i, attributes, extensions, e.Attributes, kept)
		}
	}
}

// TestLiveItem: an entry that is broadcast live is published as one.
func TestLiveItem(t *testing.T) {
	const doc = `<rss version="2.0" xmlns:podcast="https://podcastindex.org/namespace/1.0"><channel><title>T</title>
<podcast:liveItem status="live" start="2026-05-01T18:00:00Z"><title>A</title><guid>1</guid></podcast:liveItem>
<item><title>B</title><guid>2</guid></item></channel></rss>`
	feed, err := feedconv.Parse(strings.NewReader(doc), feedconv.Options{})
	if err != nil || len(feed.Entries) != 2 {
		t.Fatal(feed, err)
	}
	var out bytes.Buffer
	if err := feedconv.EncodeRSS(&out, feed); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<podcast:liveItem status="live" start="2026-05-01T18:00:00Z">`, "</podcast:liveItem>", "<item>"} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("not once %s in\n%s", want, &out)
		}
	}
	again, err := feedconv.Parse(&out, feedconv.Options{})
	if err != nil || fromfeed.Live(&again.Entries[0]).Get("status") != "live" || fromfeed.Live(&again.Entries[1]).Get("status") != "" {
		t.Error(again, err)
	}
}

// TestStrayElements: elements inside of others that are not there, and those of unknown vocabularies, are
// left out.
func TestStrayElements(t *testing.T) {
	_, list := fromfeed.Extensions(lektordir.Elements{
		{Name: "podcast:podroll/podcast:remoteItem"}, {Name: "x:y"}, {Name: "plain"}, {Name: "podcast:person", Text: "Ann"},
		{Name: "podcast:podroll/podcast:remoteItem"}, {Name: "podcast:person/x:y"}, {Name: "podcast:person/podcast:liveItem"},
	})
	if len(list) != 1 || list[0].Text != "Ann" || len(list[0].Children) != 1 {
		t.Errorf("%+v", list)
	}
}

// TestShapes: the elements of items as programs that make podcasts write them.
func TestShapes(t *testing.T) {
	const podcast, psc, itunes = ` xmlns:podcast="https://podcastindex.org/namespace/1.0"`, ` xmlns:psc="http://podlove.org/simple-chapters"`, ` xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"`
	for _, tc := range []struct{ declared, item, want string }{
		{podcast + psc, `<podcast:transcript url="https://h.example/1/transcript" type="text/html" /><podcast:transcript url="https://h.example/1/transcript.json" type="application/json" />
<psc:chapters><psc:chapter start="0:00" title="Intro" /><psc:chapter start="1:02" title="A &amp; B"/></psc:chapters>`,
			"podcast:transcript||url=https://h.example/1/transcript|type=text/html; podcast:transcript||url=https://h.example/1/transcript.json|type=application/json; psc:chapters; psc:chapters/psc:chapter||start=0:00|title=Intro; psc:chapters/psc:chapter||start=1:02|title=A & B"},
		{podcast, `<podcast:person role="Host" href="" img="">Ann</podcast:person><podcast:soundbite startTime="39.0" duration="22.0" />`,
			"podcast:person|Ann|role=Host|href=|img=; podcast:soundbite||startTime=39.0|duration=22.0"},
		// The URL of the documentation as the name of the namespace.
		{` xmlns:podcast="https://github.com/Podcastindex-org/podcast-namespace/blob/main/docs/1.0.md"`, `<podcast:episode>315.5</podcast:episode>`, "podcast:episode|315.5"},
		// Another prefix, another scheme, and no declaration at all.
		{` xmlns:pi="http://podcastindex.org/namespace/1.0/"`, `<pi:season name="Egypt">3</pi:season>`, "podcast:season|3|name=Egypt"},
		{"", `<podcast:chapters url="/c.json" type="application/json+chapters"/>`, "podcast:chapters||url=https://h.example/c.json|type=application/json+chapters"},
		// Attributes in another order, and white space.
		{podcast, "<podcast:transcript\n  language=\"en\"\n  url=\" https://h.example/1.srt \"\n  rel=\"captions\" type=\"application/srt\" />", "podcast:transcript||language=en|url=https://h.example/1.srt|rel=captions|type=application/srt"},
		// A comment and CDATA inside.
		{podcast, `<podcast:license><!-- x --><![CDATA[cc-by & more]]></podcast:license>`, "podcast:license|cc-by & more"},
		// Elements of older drafts.
		{podcast, `<podcast:alternateEnclosure url="https://h.example/low.opus" type="audio/opus" bitrate="16"/><podcast:images srcset="https://h.example/a.jpg 1500w,
 https://h.example/b.jpg 600w"/>`, "podcast:alternateEnclosure||url=https://h.example/low.opus|type=audio/opus|bitrate=16; podcast:images||srcset=https://h.example/a.jpg 1500w,  https://h.example/b.jpg 600w"},
		// Elements of other vocabularies inside and beside, and payments.
		{podcast + itunes + ` xmlns:x="urn:x"`, `<podcast:alternateEnclosure type="video/mp4" x:y="z"><x:stray/><podcast:source uri="https://h.example/v.mp4"/></podcast:alternateEnclosure><x:other/>
<podcast:value type="lightning"><podcast:valueRecipient name="n"/></podcast:value><itunes:explicit>clean</itunes:explicit><itunes:block>Yes</itunes:block>`,
			"podcast:alternateEnclosure||type=video/mp4; podcast:alternateEnclosure/podcast:source||uri=https://h.example/v.mp4; itunes:explicit|clean; itunes:block|Yes"},
		{podcast, `<podcast:socialInteract uri="https://v.example/w/1" protocol="activitypub" accountUrl="https://v.example/a/me" /><podcast:socialInteract protocol="disabled"/>`,
			"podcast:socialInteract||uri=https://v.example/w/1|protocol=activitypub|accountUrl=https://v.example/a/me; podcast:socialInteract||protocol=disabled"},
	} {
		doc := `<rss version="2.0"` + tc.declared + `><channel><title>T</title><item><title>One</title>` + tc.item + `</item></channel></rss>`
		feed, err := feedconv.Parse(strings.NewReader(doc), feedconv.Options{URL: "https://h.example/feed"})
		if err != nil || len(feed.Entries) != 1 {
			t.Errorf("%s: %v", tc.item, err)
			continue
		}
		var got []string
		for _, e := range fromfeed.Entry(&feed.Entries[0]).Elements {
			s := e.Name
			if e.Text != "" || len(e.Attributes) > 0 {
				s += "|" + e.Text
			}
			for _, a := range e.Attributes {
				s += "|" + a.Name + "=" + a.Value
			}
			got = append(got, s)
		}
		if text := strings.Join(got, "; "); text != tc.want {
			t.Errorf("%s\n got %s\nwant %s", tc.item, text, tc.want)
		}
	}
}
