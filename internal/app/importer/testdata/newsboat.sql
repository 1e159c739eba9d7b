CREATE TABLE rss_feed (  rssurl VARCHAR(1024) PRIMARY KEY NOT NULL,  url VARCHAR(1024) NOT NULL,  title VARCHAR(1024) NOT NULL , lastmodified INTEGER(11) NOT NULL DEFAULT 0, is_rtl INTEGER(1) NOT NULL DEFAULT 0, etag VARCHAR(128) NOT NULL DEFAULT "");
CREATE TABLE rss_item (  id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,  guid VARCHAR(64) NOT NULL,  title VARCHAR(1024) NOT NULL,  author VARCHAR(1024) NOT NULL,  url VARCHAR(1024) NOT NULL,  feedurl VARCHAR(1024) NOT NULL,  pubDate INTEGER NOT NULL,  content VARCHAR(65535) NOT NULL, unread INTEGER(1) NOT NULL , enclosure_url VARCHAR(1024), enclosure_type VARCHAR(1024), enqueued INTEGER(1) NOT NULL DEFAULT 0, flags VARCHAR(52), deleted INTEGER(1) NOT NULL DEFAULT 0, base VARCHAR(128) NOT NULL DEFAULT "");
INSERT INTO rss_item (guid, title, author, url, feedurl, pubDate, content, unread, flags, deleted) VALUES
 ('urn:a:1', 'One', 'k', 'https://a.example/1', 'https://a.example/feed.xml', 1767323045, 'c', 0, NULL, 0),
 ('  urn:a:2
', 'Two', 'k', 'https://a.example/', 'https://a.example/feed.xml', 1767323046, 'c', 0, 'skA', 0),
 ('urn:a:3', 'Three', 'k', 'https://a.example/', 'https://a.example/feed.xml', 1767323047, 'c', 1, '', 0),
 ('urn:a:4', 'Four', 'k', 'https://a.example/4', 'https://a.example/feed.xml', 1767323048, 'c', 1, 's', 0),
 ('urn:a:5', 'Five', 'k', 'https://a.example/5', 'https://a.example/feed.xml', 1767323049, 'c', 1, NULL, 1),
 ('Six', 'Six', 'k', '', 'https://a.example/feed.xml', 0, 'c', 0, NULL, 0),
 ('urn:b:1', 'One', 'k', 'https://b.example/1', 'https://user:secret@b.example/atom', 1767323045, 'c', 0, NULL, 0),
 ('urn:c:1', 'One', 'k', 'https://c.example/1', 'filter:~/bin/clean -x:https://c.example/feed', 1767323045, 'c', 0, NULL, 0),
 ('urn:old:1', 'One', 'k', 'https://old.example/1', 'https://old.example/feed', 1767323045, 'c', 0, NULL, 0);
