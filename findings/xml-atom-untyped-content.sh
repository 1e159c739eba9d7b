#!/bin/sh
# Perl's XML::Feed decodes as base64 an Atom content without a type, which means text
# Input: an Atom entry whose content is the words Some words, once with type="text" and once without
# Guess: Some words, Some words
# Seen with libxml-feed-perl 0.63+dfsg-1, libxml-atom-perl 0.43-1: Some words, 6 bytes
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" libxml-feed-perl 2>/dev/null)" = 0.63+dfsg-1 ] || apt-get install -y --no-install-recommends libxml-feed-perl=0.63+dfsg-1 libxml-atom-perl=0.43-1 >/dev/null
cat >p.pl <<'P'
use XML::Feed;
my @out;
for my $type (' type="text"', '') {
  my $x = qq(<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x:f</id><title>t</title><updated>2024-01-02T03:04:05Z</updated><author><name>A</name></author><entry><id>urn:x:1</id><title>e</title><updated>2024-01-02T03:04:05Z</updated><content$type>Some words</content></entry></feed>);
  my ($e) = XML::Feed->parse(\$x)->entries;
  my $body = $e->content->body;
  push @out, $body =~ /^[ -~]*$/ ? $body : length($body) . " bytes";
}
print join(", ", @out);
P
got=$(perl p.pl)
guess='Some words, Some words'
want='Some words, 6 bytes'
echo "version: libxml-feed-perl 0.63+dfsg-1, libxml-atom-perl 0.43-1"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
