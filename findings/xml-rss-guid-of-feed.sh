#!/bin/sh
# Perl's XML::RSS, and so XML::Feed, refuses a feed with podcast:guid, the identifier of a podcast
# Input: an RSS channel with and without podcast:guid
# Guess: 1 item, 1 item
# Seen with libxml-rss-perl 1.62-1: 1 item, error
set -eu
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
[ "$(dpkg-query -W -f "\${Version}" libxml-rss-perl 2>/dev/null)" = 1.62-1 ] || apt-get install -y --no-install-recommends libxml-rss-perl=1.62-1 >/dev/null
cat >p.pl <<'P'
use XML::RSS;
my @out;
for my $guid ("", "<podcast:guid>917393e3-1b1e-5cef-ace4-edaa54e1f810</podcast:guid>") {
  my $r = XML::RSS->new;
  my $ok = eval { $r->parse(qq(<rss version="2.0" xmlns:podcast="https://podcastindex.org/namespace/1.0"><channel><title>t</title><link>http://a.example/</link><description>d</description>$guid<item><title>e</title><guid>http://a.example/1</guid></item></channel></rss>)); 1 };
  push @out, $ok ? scalar(@{$r->{items}}) . " item" : "error";
}
print join(", ", @out);
P
got=$(perl p.pl)
guess='1 item, 1 item'
want='1 item, error'
echo "version: libxml-rss-perl 1.62-1"
echo "guessed: $guess"
echo "seen:    $got"
[ "$got" = "$want" ] || { echo "changed: expected $want" >&2; exit 1; }
