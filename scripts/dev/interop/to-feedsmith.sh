#!/bin/sh
# feedsmith, an npm parser of Atom, RSS and JSON Feed
# Guess: all agrees
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
packages feedsmith@3.0.1
teller
cat >read.mjs <<'J'
import { parseFeed } from "feedsmith";
import { say, file } from "./say.mjs";
const { format, feed } = parseFeed(file);
const enc = (x) => `${x.url ?? x.href} ${x.type ?? x.mime_type} ${x.length ?? x.size_in_bytes}`;
const of = {
	atom: (e) => ({ title: e.title?.value ?? e.title, link: e.links?.find((l) => (l.rel ?? "alternate") === "alternate")?.href, date: e.published,
		enclosure: e.links?.filter((l) => l.rel === "enclosure").map(enc), category: e.categories?.map((c) => c.term), html: e.content?.value ?? e.content }),
	rss: (e) => ({ title: e.title, link: e.link, id: e.guid.value, date: e.pubDate, enclosure: e.enclosures?.map(enc),
		category: e.categories?.map((c) => c.name), html: e.content?.encoded ?? e.description,
		authors: e.dc?.creators ?? e.authors }),
	json: (e) => ({ title: e.title, link: e.url, date: e.date_published, enclosure: e.attachments?.map(enc), category: e.tags,
		html: e.content_html ?? e.content_text }),
}[format];
(feed.entries ?? feed.items).forEach((e, n) => {
	const { authors = e.authors, ...rest } = of(e);
	say(n, { id: e.id, ...rest, author: authors?.map((a) => a.name ?? a) });
});
J
entries() { node read.mjs "site/feed.$1"; }
reads 'atom rss json' 'title link id date author category enclosure text'
row
