package main

import (
	"strings"
	"time"
)

// feed is a feed that was written for the pictures. Nobody else's text is in them.
type feed struct {
	host, name, author, folder string
	entries                    []entry
}

type entry struct {
	title string
	age   time.Duration
	html  string
}

const hour = time.Hour

// text makes an entry of paragraphs.
func text(title string, age time.Duration, paragraphs ...string) entry {
	return entry{title, age, "<p>" + strings.Join(paragraphs, "</p>\n<p>") + "</p>"}
}

var feeds = []feed{
	{"keeper.example", "The Keeper’s Log", "Ada Marsh", "Coast", []entry{
		text("How the light was kept when the oil ran out", 2*hour,
			"On the third night of the storm the tender had not come, and the tank showed less than a hand of oil. I have been asked since how we kept the light, and <a href=\"https://keeper.example/lamp\">what the lamp looks like</a>, so here is the whole story.",
			"A lens of this size does not need much. It needs it <em>in the right place</em>: eleven millimetres above the brass, no more and no less. We had candles, a mirror from the spare room, and <a href=\"https://keeper.example/tables\">my grandmother’s tables</a> of where the focus lies for every wick.",
			"<b>What worked:</b></p><ul><li>four candles in a ring, trimmed every ten minutes</li><li>the mirror behind them, turned to the sea</li><li>one of us awake, always</li></ul><p>By six the wind had dropped. The log of the <i>Corriemore</i>, which passed at four, says: “light dim but true”."),
		text("Fog signal: a correction", 30*hour, "It is two blasts and not three."),
		text("What the tender brought", 75*hour, "Oil. Flour. Four letters, one of them for somebody else."),
	}},
	{"tides.example", "Tide tables, Port Ellery", "", "Coast", []entry{
		text("Sunday: high water 05:12 and 17:38", 5*hour, "4.1 m and 4.3 m; the causeway is open from nine to two."),
		text("Saturday: high water 04:21 and 16:49", 29*hour, "3.9 m and 4.2 m."),
		text("Friday: high water 03:28 and 15:58", 53*hour, "3.7 m and 4.0 m."),
	}},
	{"garden.example", "Notes from a walled garden", "Wren Hollis", "Home", []entry{
		text("First frost", 4*hour, "At seven the thermometer by the door said −2 °C. The dahlias are over; the leeks did not mind."),
		text("Seeds, catalogues, and what came of last year’s", 26*hour, "Three catalogues came, and one was read aloud."),
		text("The wall has a door", 98*hour, "It was behind the ivy all the time."),
	}},
	{"kitchen.example", "A kitchen with one pot", "Jo Pell", "Home", []entry{
		text("Lentils, the long way", 8*hour, "An hour and a half, and you may not stir."),
		text("On salt", 50*hour, "Earlier than you think, and less than she said."),
	}},
	{"gazette.example", "The Lektor Gazette", "", "Computing", []entry{
		text("An entry is a directory now", 3*hour, "With a title, an id and a content; ls, cat and grep are a full interface to it."),
		text("Two viewers met in cur; nobody was hurt", 11*hour, "One renamed it first. The other looked where it had gone."),
		text("Thirty days of 200 feeds, and the disk is no fuller", 33*hour, "What was read a month ago goes, unless it is flagged."),
	}},
	{"looms.example", "Looms & compilers", "T. Okafor", "Computing", []entry{
		text("A pattern is a program that is run by hand", 6*hour, "The draft of a twill has loops, a stack of one, and no way to print."),
		text("Väven och räknemaskinen", 28*hour, "Two threads, up or down: the card has a hole or it has none."),
		text("Why the shuttle never waits for the warp", 60*hour, "Because somebody has counted."),
	}},
	{"nightbus.example", "Night bus", "Line 12", "", []entry{
		text("The 2:40 from the harbour, and who was on it", 9*hour, "A cellist, two bakers, and a man with a door."),
		text("Timetable for the dark weeks", 80*hour, "Every forty minutes, and on Fridays when it is full."),
	}},
}
