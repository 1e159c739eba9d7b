#!/bin/sh
# XML::Feed, the parser of programs in Perl
# Guess: all agrees
# Seen: one author, by address; the guid is a link if there is none
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb libxml-feed-perl 0.63+dfsg-1
cat >read.pl <<'P'
use XML::Feed;
$XML::Atom::ForceUnicode = 1;
binmode STDOUT, ":utf8";
my $n;
for my $e (XML::Feed->parse($ARGV[0])->entries) {
	$n++;
	my $say = sub { print "$n $_[0]\t", $_[1] // "", "\n" };
	$say->(title => $e->title);
	$say->(link => $e->link);
	$say->(id => $e->id);
	$say->(date => $e->issued->set_time_zone("UTC")->strftime("%FT%TZ"));
	$say->(author => ref $e->author ? @{$e->author} : $e->author);
	$say->(category => $_) for $e->category;
	$say->(enclosure => join " ", $_->url, $_->type, $_->length) for grep { $_ } $e->enclosure;
	my $text = $e->content->body =~ s/<[^>]*>//gr;
	$say->(text => $text =~ s/&lt;/</gr =~ s/&gt;/>/gr);
}
P
entries() { perl read.pl "site/feed.$1"; }
known 'atom 3 author' Bob 'it has one author'
known 'rss 3 author' Bob 'it has one author'
known 'rss 2 author' 'ann@a.example (Ann, B.)' 'it prefers the address of author to the name of dc:creator'
known 'rss 3 link' urn:x:2 'without a link it takes the guid for one, though it says isPermaLink="false"'
reads 'atom rss' 'title link id date author category enclosure text'
row
