#!/bin/sh
# Django's feeds (django.contrib.syndication), as hyperkitty and many sites have them: Atom, with a digest as ETag
# Guess: all agrees; the id is the URL
# Seen: as guessed
# shellcheck source=scripts/dev/interop/lib
. "$(dirname "$0")/lib"
deb python3-django 3:3.2.25-0+deb12u7
cat >site.py <<'P'
import json, os
from datetime import datetime
from wsgiref.handlers import CGIHandler
from django.conf import settings
settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], USE_TZ=True, SECRET_KEY="x",
    MIDDLEWARE=["django.middleware.http.ConditionalGetMiddleware"])
import django; django.setup()
from django.contrib.syndication.views import Feed
from django.core.wsgi import get_wsgi_application
from django.urls import path
from django.utils.feedgenerator import Atom1Feed
base = open("base").read().strip()
class Posts(Feed):
    feed_type, title, subtitle, link = Atom1Feed, "s", "d", base + "/"
    def items(self): return sorted((json.load(open("posts/" + f)) for f in os.listdir("posts")), key=lambda p: p[2], reverse=True)
    def item_title(self, p): return p[1]
    def item_description(self, p): return "<p>%s</p>" % p[3]
    def item_link(self, p): return "%s/%s" % (base, p[0])
    def item_pubdate(self, p): return datetime.fromisoformat(p[2] + "T10:00:00+00:00")
urlpatterns = [path("atom", Posts())]
CGIHandler().run(get_wsgi_application())
P
mkdir posts
post() { printf '["%s", "%s", "%s", "%s"]' "$@" >"posts/$1"; }
drop() { rm "posts/$1"; }
build() { echo "$1" >base; }
serve --cgi "$(command -v sh)" -c "cd $PWD && exec /usr/bin/python3 site.py"
live atom
row
