#!/bin/sh
# @ascorbic/feed-loader, the loader of Astro
# Guess: all agrees
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
packages @ascorbic/feed-loader@2.0.1 astro@5.16.0
teller
cat >read.mjs <<'J'
import { feedLoader } from "@ascorbic/feed-loader";
import { say, file } from "./say.mjs";
globalThis.fetch = async () => new Response(file, { headers: { "Content-Type": "application/xml" } });
const all = [];
await feedLoader({ url: "http://a.example/" }).load({ store: { set: (x) => all.push(x.data), clear() {}, keys: () => [], delete() {}, has: () => false },
	logger: { info() {}, warn() {} }, parseData: async ({ data }) => data, meta: new Map(), generateDigest: () => "" });
all.forEach((e, n) => say(n, { title: e.title, link: e.url ?? e.link, id: e.id ?? e.guid, date: e.published ?? e.pubdate }));
J
entries() { node read.mjs "site/feed.$1"; }
reads 'atom rss' 'title link id date'
row
