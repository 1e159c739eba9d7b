#!/bin/sh
# SimplePie 1.5.8, the parser of WordPress, an older one than that of FreshRSS
# Guess: all agrees
# Seen: it opens the audio if there is no link, and one person is two authors
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb wordpress 6.1.9+dfsg1-0+deb12u1
command -v php >/dev/null || skip 'needs php'
cat >read.php <<'P'
<?php
error_reporting(0);
define("ABSPATH", "/usr/share/wordpress/");
define("WPINC", "wp-includes");
require_once "/usr/share/wordpress/wp-includes/class-simplepie.php";
$feed = new SimplePie();
$feed->set_raw_data(file_get_contents($argv[1]));
$feed->init();
foreach ($feed->get_items() as $n => $e) {
	$say = function ($name, $value) use ($n) { echo $n + 1, " $name\t", html_entity_decode($value ?? ""), "\n"; };
	$say("title", $e->get_title());
	$say("link", $e->get_permalink());
	$say("id", $e->get_id());
	$say("date", gmdate("Y-m-d\TH:i:s\Z", $e->get_date("U")));
	foreach ($e->get_authors() ?? [] as $a) $say("author", $a->get_name() ?? $a->get_email());
	foreach ($e->get_categories() ?? [] as $c) $say("category", $c->get_label() ?? $c->get_term());
	foreach ($e->get_enclosures() ?? [] as $x)
		if ($x->get_link()) $say("enclosure", $x->get_link() . " " . $x->get_type() . " " . $x->get_length());
	$say("text", strip_tags($e->get_content()));
}
P
entries() { php read.php "site/feed.$1"; }
known 'atom 3 link' 'https://a.example/2.mp3?x=1&y=2' 'without another link it takes the audio for the article'
known 'rss 3 link' 'https://a.example/2.mp3?x=1&y=2' 'without another link it takes the audio for the article'
known 'rss 2 author' 'ann@a.example (Ann, B.)|Ann, B.' 'it lists author and dc:creator, which are one person, as two'
reads 'atom rss' 'title link id date author category enclosure text'
row
