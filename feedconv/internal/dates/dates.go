// Package dates reads dates as feeds write them.
package dates

import (
	"cmp"
	"regexp"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // for systems that have none
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// maxDateLen is the maximum length of a date in bytes. The longest sensible dates have full names
// of weekday and month, a fraction and a zone with a comment.
const maxDateLen = 150

// Parse reads a date as feeds write them: ISO 8601 and RFC 3339 with parts left out, RFC 822 and
// its relatives in any order of their parts and with the names of many languages, asctime, numbers
// with slashes or dots, seconds since 1970. The result is in UTC; a date without a zone is read as
// UTC. Impossible dates (30 February, 25 o'clock) are refused. So is the year 1, which some
// programs write if they have no date.
func Parse(s string) (_ time.Time, ok bool) {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > maxDateLen {
		return time.Time{}, false
	}
	s, zone := cutZone(dropComments(s))
	s = foldDate(s)
	iso := s
	// A day of the week may stand before any form.
	if i := strings.IndexAny(s, "0123456789"); i > 0 && digits(s[i:]) >= 4 && len(s[i:]) >= len("2022-1-1") &&
		isLetters(strings.Trim(s[:i], " ,.")) {
		iso = s[i:]
	}
	d := newDateParts()
	if !d.iso(iso) {
		d = newDateParts()
		if !d.tokens(s) {
			return time.Time{}, false
		}
	}
	d.in = zone
	t, ok := d.time()
	return t, ok && t.Year() > 1 && t.Year() < 10000
}

// foldDate returns a date in lower case and without accents, which are left out as
// often as not, with the digits of the West, and with the marks of year and month of
// eastern Asia as hyphens; a month that stands after its day, or alone, keeps a mark.
func foldDate(s string) string {
	s = strings.ToLower(s)
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 }) {
		return s
	}
	marks := dateMarks
	if year, month := strings.IndexAny(s, "年년"), strings.IndexAny(s, "月월"); month >= 0 && (year < 0 || year > month) {
		marks = monthMarks
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Mn, r):
			return -1
		case r >= '٠' && r <= '٩':
			return '0' + r - '٠'
		case r >= '۰' && r <= '۹':
			return '0' + r - '۰'
		case r == '،':
			return ','
		case r == '־':
			return '-'
		case r == '\u200e', r == '\u200f', r == 'ـ', r == '׳':
			return -1
		case unicode.IsSpace(r):
			return ' '
		}
		return r
	}, norm.NFD.String(marks.Replace(s)))
	return levantine.Replace(s)
}

var dateMarks = strings.NewReplacer("年", "-", "月", "-", "日", " ", "년 ", "-", "년", "-", "월 ", "-", "월", "-", "일", " ",
	"ı", "i", "’", "'", "\u2212", "-")

// monthMarks replaces the month names of eastern Asia in dates that do not begin with the year.
var monthMarks = strings.NewReplacer("十二月", "12"+monthMark+" ", "十一月", "11"+monthMark+" ", "十月", "10"+monthMark+" ",
	"九月", "9"+monthMark+" ", "八月", "8"+monthMark+" ", "七月", "7"+monthMark+" ", "六月", "6"+monthMark+" ", "五月",
	"5"+monthMark+" ",
	"四月", "4"+monthMark+" ", "三月", "3"+monthMark+" ", "二月", "2"+monthMark+" ", "一月", "1"+monthMark+" ",
	"月", monthMark+" ", "월", monthMark+" ", "年", " ", "년", " ", "日", " ", "일", " ", "ı", "i", "’", "'", "\u2212", "-")

// monthMark stands behind the number of a month.
const monthMark = "\uE001"

// levantine are months of two words, folded.
var levantine = strings.NewReplacer("كانون الثاني", "يناير", "كانون الاول", "ديسمبر", "تشرين الثاني", "نوفمبر",
	"تشرين الاول", "اكتوبر")

// cutZone takes the name of a zone of the tz database out of a date, and returns the zone, or nil: "Europe/Berlin",
// "EST5EDT", or any between brackets, as in "2022-11-18T12:00+01:00[Europe/Berlin]". An unknown name stays, except
// between brackets.
func cutZone(s string) (string, *time.Location) {
	if before, rest, ok := strings.Cut(s, "["); ok {
		name, after, _ := strings.Cut(rest, "]")
		return before + " " + after, location(name)
	}
	for word := range strings.FieldsSeq(s) {
		if isLetter(word[0]) && (strings.Contains(word, "/") || len(word) == 7 && strings.HasSuffix(word, "DT")) {
			if in := location(word); in != nil {
				return strings.Replace(s, word, "", 1), in
			}
		}
	}
	return s, nil
}

// location returns the zone of a name, or nil.
func location(name string) *time.Location {
	in, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil
	}
	return in
}

// dropComments removes the comments of RFC 822: "(PST)".
func dropComments(s string) string {
	for open := strings.IndexByte(s, '('); open >= 0; open = strings.IndexByte(s, '(') {
		_, rest, _ := strings.Cut(s[open:], ")")
		s = strings.TrimSpace(s[:open] + " " + rest)
	}
	return s
}

// dateParts collects the parts of a date; -1 means that a part has not been read.
type dateParts struct {
	year, month, day     int
	hour, min, sec, nano int
	pm                   int  // 0 for am, 1 for pm
	begun                bool // a number was seen
	perhapsDay           bool // the word read as a month may be a day of the week
	offset               int  // seconds east of Greenwich
	zone                 zoneKind
	in                   *time.Location // that was named, or nil
	at                   time.Time      // in seconds since 1970, or zero
}

func newDateParts() *dateParts {
	return &dateParts{year: -1, month: -1, day: -1, hour: -1, pm: -1}
}

func (d *dateParts) time() (time.Time, bool) {
	if !d.at.IsZero() {
		return d.at, true
	}
	if d.year < 0 || d.month < 1 || d.month > 12 || d.day < 1 || d.day > daysIn(d.year, d.month) {
		return time.Time{}, false
	}
	hour := max(d.hour, 0)
	if d.pm >= 0 {
		if hour < 1 || hour > 12 {
			if d.pm == 0 || hour < 13 { // "13:05 PM" means what it says
				return time.Time{}, false
			}
		} else {
			hour = hour%12 + 12*d.pm
		}
	}
	midnight := hour == 24 && d.min == 0 && d.sec == 0
	if hour > 23 && !midnight || d.min > 59 || d.sec > 60 {
		return time.Time{}, false
	}
	if d.in != nil && d.zone == noZone {
		return time.Date(d.year, time.Month(d.month), d.day, hour, d.min, d.sec, d.nano, d.in).UTC(), true
	}
	t := time.Date(d.year, time.Month(d.month), d.day, hour, d.min, d.sec, d.nano, time.UTC)
	return t.Add(-time.Duration(d.offset) * time.Second), true
}

func daysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// iso reads dates that begin with a year of four digits.
func (d *dateParts) iso(s string) bool {
	n := digits(s)
	switch {
	case n == 4:
		d.year = atoi(s[:4])
		s = s[4:]
		return d.isoCalendar(&s) && d.isoTime(s)
	case n == 8 || n == 12 || n == 14:
		d.year, d.month, d.day = atoi(s[:4]), atoi(s[4:6]), atoi(s[6:8])
		if n > 8 {
			return d.clock(s[8:])
		}
		return d.isoTime(s[8:])
	case n == len(s) && n == 10: // since 1970
		d.at = time.Unix(int64(atoi(s)), 0).UTC()
		return true
	case n == len(s) && n == 13:
		d.at = time.UnixMilli(int64(atoi(s))).UTC()
		return true
	}
	return false
}

// isoCalendar reads what follows a year of four digits up to the time.
func (d *dateParts) isoCalendar(s *string) (ok bool) {
	d.month, d.day = 1, 1
	if *s == "" {
		return true
	}
	separator := (*s)[0]
	if *s = (*s)[1:]; strings.IndexByte("-/.", separator) < 0 {
		return false
	}
	if d.month, ok = cutNumber(s, 1, 2); ok {
		if cutByte(s, separator) {
			d.day, ok = cutNumber(s, 1, 2)
		}
		return ok
	}
	n, ok := cutNumber(s, 4, 4)
	d.month, d.day = n/100, n%100
	return ok && separator == '-'
}

// isoTime reads an optional time and zone after a date.
func (d *dateParts) isoTime(s string) bool {
	s = strings.TrimPrefix(s, "t")
	s = strings.TrimLeft(s, " \t\n,")
	if s == "" {
		return true
	}
	if n := digits(s); n > 0 && !strings.Contains(s, ":") && (n == 2 || n == 4 || n == 6) {
		return d.clock(s)
	}
	// "2004/01/12 10:14 PM PST" and the like.
	return d.tokens(s)
}

// clock reads "191020", "1910" and "19" with fraction and zone.
func (d *dateParts) clock(s string) bool {
	n := digits(s)
	d.hour = atoi(s[:2])
	if n > 2 {
		d.min = atoi(s[2:4])
	}
	if n > 4 {
		d.sec = atoi(s[4:6])
	}
	return d.afterClock(s[n:])
}

// afterClock reads a fraction of a second, am or pm, and a zone.
func (d *dateParts) afterClock(s string) bool {
	if len(s) > 1 && (s[0] == '.' || s[0] == ',') && isDigit(s[1]) {
		n := digits(s[1:])
		scale := 100_000_000
		for _, c := range []byte(s[1 : 1+n]) {
			d.nano += int(c-'0') * scale
			scale /= 10
		}
		s = s[1+n:]
	}
	s = strings.TrimLeft(s, " ")
	if s == "" {
		return true
	}
	return d.word(s)
}

// tokens reads parts in any order.
func (d *dateParts) tokens(s string) bool {
	for s != "" {
		i := endOfToken(s)
		token := s[:i]
		s = strings.TrimLeft(s[min(i+1, len(s)):], " \t\n\r,;")
		if token != "" && !d.token(token) {
			return false
		}
	}
	return true
}

// endOfToken finds the separator after the first token. The comma in "10:14:55,5" is not a
// separator.
func endOfToken(s string) int {
	colon := false
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ':':
			colon = true
		case ',':
			if colon && i+1 < len(s) && isDigit(s[i-1]) && isDigit(s[i+1]) {
				continue
			}
			return i
		case ' ', '\t', '\n', '\r', ';':
			return i
		}
	}
	return len(s)
}

func (d *dateParts) token(t string) bool {
	switch t {
	case "-", "–", "—", "|", "@": // between date and time
		return true
	}
	if rest, ok := strings.CutPrefix(t, "ב-"); ok && rest != "" && isDigit(rest[0]) { // "on the", in Hebrew
		t = rest
	}
	if !isDigit(t[0]) {
		return d.word(t)
	}
	d.begun = true
	n := digits(t)
	if n == len(t) {
		return d.number(t)
	}
	return d.numberWith(t[:n], t[n:])
}

// numberWith reads a number and what follows it without a space.
func (d *dateParts) numberWith(number, rest string) bool {
	switch rest {
	case ".", "st", "nd", "rd", "th", "er", "re", "º", "ª":
		return d.number(number)
	case monthMark:
		if d.month >= 0 || len(number) > 2 {
			return false
		}
		d.month = atoi(number)
		return true
	case "am", "pm", "a.m.", "p.m.":
		if d.hour >= 0 || len(number) > 2 {
			return false
		}
		d.hour = atoi(number)
		return d.word(rest)
	}
	switch all := number + rest; {
	case rest[0] == ':':
		return d.colons(all)
	case rest[0] == 'h': // 10h14 and 10h
		return d.colons(number + ":" + cmp.Or(rest[1:], "00"))
	case rest[0] == '.' && d.day > 0 && d.hour < 0: // 10.14 and 10.14.55
		return d.colons(strings.ReplaceAll(all, ".", ":"))
	case rest[0] == '/' || rest[0] == '.':
		return d.numeric(all, rest[0])
	case rest[0] == '-' && d.hour < 0 && len(rest) > 1: // 10-Jan-2004
		for part := range strings.SplitSeq(all, "-") {
			if part == "" || !d.token(part) {
				return false
			}
		}
		return true
	}
	return false
}

// colons reads "10:14", "10:14:55.3", "10:14pm" and "10:14:55+01:00".
func (d *dateParts) colons(t string) (ok bool) {
	if d.hour >= 0 {
		return false
	}
	if d.hour, ok = cutNumber(&t, 1, 2); !ok || !cutByte(&t, ':') {
		return false
	}
	d.min, ok = cutNumber(&t, 1, 2)
	if len(t) > 1 && isDigit(t[1]) && cutByte(&t, ':') && ok {
		d.sec, ok = cutNumber(&t, 1, 2)
	}
	return ok && d.afterClock(t)
}

// number reads a day or a year.
func (d *dateParts) number(s string) bool {
	v := atoi(s)
	switch {
	case len(s) == 4 && d.year < 0:
		d.year = v
	case len(s) > 2:
		return false
	case d.day < 0 && v >= 1 && v <= 31:
		d.day = v
	case d.year < 0 && len(s) == 2:
		d.year = pivot(v)
	default:
		return false
	}
	return true
}

// numeric reads "12/25/2003", which is American unless it cannot be, and
// "25.12.2003", which is not.
func (d *dateParts) numeric(t string, sep byte) bool {
	parts := strings.Split(strings.TrimSuffix(t, "."), string(sep))
	if len(parts) != 3 || d.year >= 0 || d.month >= 0 && !d.perhapsDay || d.day >= 0 {
		return false
	}
	year := len(parts[2])
	var v [3]int
	for i, most := range [...]int{2, 2, 4} {
		var ok bool
		if v[i], ok = cutNumber(&parts[i], 1, most); !ok || parts[i] != "" {
			return false
		}
	}
	d.month, d.day, d.year = v[0], v[1], v[2]
	if sep == '.' || d.month > 12 {
		d.month, d.day = d.day, d.month
	}
	if year == 2 {
		d.year = pivot(d.year)
	}
	return year == 2 || year == 4
}

// pivot adds the century to a year of two digits.
func pivot(year int) int {
	if year < 70 {
		return 2000 + year
	}
	return 1900 + year
}

// word reads the names of months and zones, am and pm. Others count for nothing:
// days of the week, in any language and spelling (a wrong one is more often wrong
// than the date); what stands between the parts; zones that nobody knows, which
// RFC 2822 (section 4.3) says to take for UTC.
func (d *dateParts) word(t string) bool {
	t = strings.TrimPrefix(strings.TrimRight(t, "."), "d'") // d'abril
	if half, read := d.half(t); half {
		return read
	}
	return d.zoneOf(t) || isLetters(t) && d.monthName(t)
}

// half reads am and pm; isHalf reports whether t is one of them, with or without a zone.
func (d *dateParts) half(t string) (isHalf, read bool) {
	if half, ok := halves()[t]; ok {
		if d.pm >= 0 {
			return true, t[0] >= 0x80
		}
		d.pm = half
		return true, true
	}
	if len(t) > 2 && (t[2] == '+' || t[2] == '-' || t[2] == ' ') { // "pm-0500"
		if _, ok := halves()[t[:2]]; ok {
			return true, d.word(t[:2]) && d.word(strings.TrimSpace(t[2:]))
		}
	}
	return false, false
}

// zoneOf reads an offset or the name of a zone. Only names of three letters may
// stand before the time: "at", "pt" and "ct" are words, too. A number overrides a name beside it:
// "+0100 CET", "GMT +0100".
func (d *dateParts) zoneOf(t string) bool {
	if m := offsetForm().FindStringSubmatch(t); m != nil {
		hours, minutes := atoi(m[2]), atoi(m[3]+m[4])
		if m[5] != "" { // the last digit was cut off: "+05:3"
			minutes = 10 * atoi(m[5])
		}
		if hours > 15 || minutes > 59 {
			return false
		}
		if d.zone != numericZone {
			d.offset, d.zone = hours*3600+minutes*60, numericZone
			if m[1] == "-" {
				d.offset = -d.offset
			}
		}
		return true
	}
	hours, ok := zones()[t]
	if !ok || !d.begun || d.hour < 0 && len(t) <= 2 {
		return false
	}
	if d.zone == noZone {
		d.offset, d.zone = int(hours*3600), namedZone
	}
	return true
}

// offsetForm matches "+1", "-01", "gmt+2", "+100", "+0100", "+010000", "-5:30", "+05:30:00" and "+05:3".
var offsetForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:gmt|utc)?([+-])(\d{1,2}?)(?:(\d\d)(?:\d\d)?|:(\d\d)(?::.*)?|:([03]))?$`)
})

// monthName reads the name of a month; other words count for nothing before the time.
func (d *dateParts) monthName(t string) bool {
	m := monthOf(t)
	switch {
	case m == 0:
	case d.month < 0 || d.perhapsDay:
		// At the start of a date "mar" is March or mardi, martes, martedì; "paz" is
		// październik or pazar. It is the day if a month follows.
		d.month, d.perhapsDay = m, d.day < 0 && d.year < 0 && (t == "mar" || t == "paz")
	case d.hour < 0:
		return false
	}
	return true
}

// isLetters reports whether t is a word, with the marks that abbreviations have.
func isLetters(t string) bool {
	found := false
	for _, r := range t {
		switch {
		case r|0x20 >= 'a' && r|0x20 <= 'z', r >= 0x80 && unicode.IsLetter(r):
			found = true
		case r != '.' && r != '\'' && r != '-':
			return false
		}
	}
	return found
}

// monthOf returns the month that a word begins with the name of, else 0.
func monthOf(word string) int {
	if rest, ok := strings.CutPrefix(word, "ב"); ok && rest != "" { // "in", in Hebrew
		if m := monthOf(rest); m > 0 {
			return m
		}
	}
	switch {
	case word == "mardi", word == "martes", word == "martedi", word == "marti", strings.HasPrefix(word, "pazar"):
		return 0 // Tuesday in the languages of Rome; Sunday and Monday in Turkish
	}
	for n := min(len(word), maxMonthStem); n > 1; n-- {
		if m, ok := monthStems()[word[:n]]; ok && (n > 2 || n == len(word)) {
			return m
		}
	}
	return 0
}

// maxMonthStem is the length of the longest of monthStems.
const maxMonthStem = 12

// monthStems are beginnings of the names of months, without accents, after the
// Unicode CLDR: of English, French, German, Spanish, Italian, Portuguese, Catalan,
// Romanian, Dutch, Swedish, Danish, Norwegian, Finnish, Estonian, Polish, Czech,
// Slovak, Hungarian, Turkish, Indonesian, Russian, Ukrainian, Bulgarian and
// Greek. The longest that fits counts.
var monthStems = sync.OnceValue(func() map[string]int {
	stems := map[string]int{}
	for i, month := range []string{
		"jan ian ene gen tammi jaan sty led oca янв яну січ ιαν",
		"feb fev fév helmi veeb lut uno sub фев лют φεβ",
		"mar mrz mae mrt maart maalis bre мар бер μαρ",
		"apr avr abr huhti kwi dub nis апр кві квi απρ",
		"may mai maj mei mag touko kve маи мая тра μαι μαϊ",
		"jun juin giu iun kesa juun cze cerven cervn cvn haz июн юни чер ιουν",
		"jul juil lug iul heina juul lip cervenec cervenc cvc tem июл юли лип ιουλ",
		"aug aou ago ag elo sie srp agu авг серп αυγ",
		"sep set syys szep wrz zar eyl сен сеп вер σεπ",
		"oct okt ott out loka paz rij eki окт жов οκτ",
		"nov noi marras lis kas ноя ное лис νοε",
		"dec dez dic des jou det gru pro ara дек гру δεκ",
	} {
		for stem := range strings.FieldsSeq(month) {
			stems[norm.NFD.String(stem)] = i + 1
		}
	}
	for i, month := range semiticMonths {
		for stem := range strings.FieldsSeq(month) {
			stems[stem] = i + 1
		}
	}
	return stems
})

// semiticMonths are the beginnings of Hebrew and Arabic months, folded: in Egypt, the Maghreb and
// the Levant.
var semiticMonths = [...]string{
	"ינו يناير جانفي", "פבר فبراير فيفري شباط", "מרץ מרס مارس اذار", "אפר ابريل افريل نيسان", "מאי مايو ماي ايار",
	"יונ يونيو يونيه جوان حزيران",
	"יול يوليو يوليه جويلية تموز", "אוג اغسطس غشت اوت اب", "ספט سبتمبر شتنبر ايلول", "אוק اكتوبر", "נוב نوفمبر نونبر",
	"דצמ ديسمبر دجنبر",
}

// halves are the halves of the day, 0 for am, in English, Greek, Arabic and the languages of eastern Asia, folded.
var halves = sync.OnceValue(func() map[string]int {
	return map[string]int{
		"am": 0, "a.m": 0, "pm": 1, "p.m": 1, "πμ": 0, "π.μ": 0, "μμ": 1, "μ.μ": 1,
		"ص": 0, "صباحا": 0, "م": 1, "مساء": 1, norm.NFD.String("오전"): 0, norm.NFD.String("오후"): 1, "上午": 0, "下午": 1,
		"午前": 0, "午後": 1,
	}
})

// zoneKind is the form of a zone, from the least to the most precise.
type zoneKind uint8

const (
	noZone zoneKind = iota
	namedZone
	numericZone
)

// zones are hours east of Greenwich. The American names without S or D mean
// standard time.
var zones = sync.OnceValue(func() map[string]float64 {
	return map[string]float64{
		"z": 0, "ut": 0, "utc": 0, "gmt": 0, "wet": 0,
		"west": 1, "bst": 1, "cet": 1, "met": 1, "mez": 1, "wat": 1,
		"cest": 2, "mest": 2, "mesz": 2, "eet": 2, "sast": 2, "cat": 2,
		"eest": 3, "msk": 3, "eat": 3, "trt": 3,
		"msd": 4, "gst": 4, "pkt": 5, "ist": 5.5, "ict": 7, "wib": 7,
		"sgt": 8, "hkt": 8, "awst": 8, "pht": 8, "jst": 9, "kst": 9,
		"acst": 9.5, "acdt": 10.5, "aest": 10, "aedt": 11, "nzst": 12, "nzdt": 13,
		"nst": -3.5, "ndt": -2.5, "brt": -3, "art": -3, "clt": -4,
		"at": -4, "ast": -4, "adt": -3,
		"et": -5, "est": -5, "edt": -4,
		"ct": -6, "cst": -6, "cdt": -5,
		"mt": -7, "mst": -7, "mdt": -6,
		"pt": -8, "pst": -8, "pdt": -7,
		"akst": -9, "akdt": -8, "hst": -10, "hast": -10, "hadt": -9,
	}
})

// digits counts the digits that s begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// cutNumber removes a number from the front of s if it has from least to most digits.
func cutNumber(s *string, least, most int) (v int, ok bool) {
	n := digits(*s)
	if n < least || n > most {
		return 0, false
	}
	v = atoi((*s)[:n])
	*s = (*s)[n:]
	return v, true
}

// cutByte removes the first byte of s if it is c.
func cutByte(s *string, c byte) bool {
	if *s == "" || (*s)[0] != c {
		return false
	}
	*s = (*s)[1:]
	return true
}

// atoi reads digits.
func atoi(s string) int {
	v := 0
	for i := 0; i < len(s); i++ {
		v = v*10 + int(s[i]-'0')
	}
	return v
}
