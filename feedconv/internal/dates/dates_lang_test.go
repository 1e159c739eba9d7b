package dates

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// dateLanguages are the names of days, from Sunday, and months of the Unicode
// CLDR: abbreviated and wide; of months also the genitive where a date has it.
var dateLanguages = map[string]struct{ days, fullDays, months, fullMonths string }{
	"en": {"Sun Mon Tue Wed Thu Fri Sat", "Sunday Monday Tuesday Wednesday Thursday Friday Saturday",
		"Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec", "January February March April May June July August September October November December"},
	"fr": {"dim. lun. mar. mer. jeu. ven. sam.", "dimanche lundi mardi mercredi jeudi vendredi samedi",
		"janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.", "janvier février mars avril mai juin juillet août septembre octobre novembre décembre"},
	"de": {"So Mo Di Mi Do Fr Sa", "Sonntag Montag Dienstag Mittwoch Donnerstag Freitag Samstag",
		"Jan. Feb. Mär. Apr. Mai Juni Juli Aug. Sept. Okt. Nov. Dez.", "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"},
	"de-AT": {"So. Mo. Di. Mi. Do. Fr. Sa.", "Sonntag Montag Dienstag Mittwoch Donnerstag Freitag Sonnabend",
		"Jän Feb Mrz Apr Mai Jun Jul Aug Sep Okt Nov Dez", "Jänner Feber Maerz April Mai Juni Juli August September Oktober November Dezember"},
	"es": {"dom lun mar mié jue vie sáb", "domingo lunes martes miércoles jueves viernes sábado",
		"ene feb mar abr may jun jul ago sept oct nov dic", "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"},
	"it": {"dom lun mar mer gio ven sab", "domenica lunedì martedì mercoledì giovedì venerdì sabato",
		"gen feb mar apr mag giu lug ago set ott nov dic", "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre"},
	"pt": {"dom. seg. ter. qua. qui. sex. sáb.", "domingo segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado",
		"jan. fev. mar. abr. mai. jun. jul. ago. set. out. nov. dez.", "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro"},
	"ca": {"dg. dl. dt. dc. dj. dv. ds.", "diumenge dilluns dimarts dimecres dijous divendres dissabte",
		"gen. febr. març d’abr. maig juny jul. d’ag. set. d’oct. nov. des.", "gener febrer març d’abril maig juny juliol d’agost setembre d’octubre novembre desembre"},
	"ro": {"dum. lun. mar. mie. joi vin. sâm.", "duminică luni marți miercuri joi vineri sâmbătă",
		"ian. feb. mar. apr. mai iun. iul. aug. sept. oct. nov. dec.", "ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie"},
	"nl": {"zo ma di wo do vr za", "zondag maandag dinsdag woensdag donderdag vrijdag zaterdag",
		"jan. feb. mrt. apr. mei jun. jul. aug. sep. okt. nov. dec.", "januari februari maart april mei juni juli augustus september oktober november december"},
	"sv": {"sön mån tis ons tors fre lör", "söndag måndag tisdag onsdag torsdag fredag lördag",
		"jan. feb. mars apr. maj juni juli aug. sep. okt. nov. dec.", "januari februari mars april maj juni juli augusti september oktober november december"},
	"da": {"søn. man. tirs. ons. tors. fre. lør.", "søndag mandag tirsdag onsdag torsdag fredag lørdag",
		"jan. feb. mar. apr. maj jun. jul. aug. sep. okt. nov. dec.", "januar februar marts april maj juni juli august september oktober november december"},
	"no": {"søn. man. tir. ons. tor. fre. lør.", "søndag mandag tirsdag onsdag torsdag fredag lørdag",
		"jan. feb. mars apr. mai juni juli aug. sep. okt. nov. des.", "januar februar mars april mai juni juli august september oktober november desember"},
	"fi": {"su ma ti ke to pe la", "sunnuntaina maanantaina tiistaina keskiviikkona torstaina perjantaina lauantaina",
		"tammik. helmik. maalisk. huhtik. toukok. kesäk. heinäk. elok. syysk. lokak. marrask. jouluk.", "tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta heinäkuuta elokuuta syyskuuta lokakuuta marraskuuta joulukuuta"},
	"et": {"P E T K N R L", "pühapäev esmaspäev teisipäev kolmapäev neljapäev reede laupäev",
		"jaan veebr märts apr mai juuni juuli aug sept okt nov dets", "jaanuar veebruar märts aprill mai juuni juuli august september oktoober november detsember"},
	"pl": {"niedz. pon. wt. śr. czw. pt. sob.", "niedziela poniedziałek wtorek środa czwartek piątek sobota",
		"sty lut mar kwi maj cze lip sie wrz paź lis gru", "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia"},
	"pl nominative": {"nie pon wto śro czw pią sob", "niedziela poniedziałek wtorek środa czwartek piątek sobota",
		"sty. lut. mar. kwi. maj cze. lip. sie. wrz. paź. lis. gru.", "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad grudzień"},
	"cs": {"ne po út st čt pá so", "neděle pondělí úterý středa čtvrtek pátek sobota",
		"led úno bře dub kvě čvn čvc srp zář říj lis pro", "ledna února března dubna května června července srpna září října listopadu prosince"},
	"cs nominative": {"Ne Po Út St Čt Pá So", "Neděle Pondělí Úterý Středa Čtvrtek Pátek Sobota",
		"led úno bře dub kvě čvn čvc srp zář říj lis pro", "leden únor březen duben květen červen červenec srpen září říjen listopad prosinec"},
	"sk": {"ne po ut st št pi so", "nedeľa pondelok utorok streda štvrtok piatok sobota",
		"jan feb mar apr máj jún júl aug sep okt nov dec", "januára februára marca apríla mája júna júla augusta septembra októbra novembra decembra"},
	"hu": {"V H K Sze Cs P Szo", "vasárnap hétfő kedd szerda csütörtök péntek szombat",
		"jan. febr. márc. ápr. máj. jún. júl. aug. szept. okt. nov. dec.", "január február március április május június július augusztus szeptember október november december"},
	"tr": {"Paz Pzt Sal Çar Per Cum Cmt", "Pazar Pazartesi Salı Çarşamba Perşembe Cuma Cumartesi",
		"Oca Şub Mar Nis May Haz Tem Ağu Eyl Eki Kas Ara", "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık"},
	"id": {"Min Sen Sel Rab Kam Jum Sab", "Minggu Senin Selasa Rabu Kamis Jumat Sabtu",
		"Jan Feb Mar Apr Mei Jun Jul Agu Sep Okt Nov Des", "Januari Februari Maret April Mei Juni Juli Agustus September Oktober November Desember"},
	"ru": {"вс пн вт ср чт пт сб", "воскресенье понедельник вторник среда четверг пятница суббота",
		"янв. февр. мар. апр. мая июн. июл. авг. сент. окт. нояб. дек.", "января февраля марта апреля мая июня июля августа сентября октября ноября декабря"},
	"ru nominative": {"Вс Пн Вт Ср Чт Пт Сб", "Воскресенье Понедельник Вторник Среда Четверг Пятница Суббота",
		"Янв Фев Мар Апр Май Июн Июл Авг Сен Окт Ноя Дек", "Январь Февраль Март Апрель Май Июнь Июль Август Сентябрь Октябрь Ноябрь Декабрь"},
	"uk": {"нд пн вт ср чт пт сб", "неділя понеділок вівторок середа четвер пʼятниця субота",
		"січ. лют. бер. квіт. трав. черв. лип. серп. вер. жовт. лист. груд.", "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня"},
	"bg": {"нд пн вт ср чт пт сб", "неделя понеделник вторник сряда четвъртък петък събота",
		"яну фев март апр май юни юли авг сеп окт ное дек", "януари февруари март април май юни юли август септември октомври ноември декември"},
	"he": {"יום־א׳ יום־ב׳ יום־ג׳ יום־ד׳ יום־ה׳ יום־ו׳ שבת", "ראשון שני שלישי רביעי חמישי שישי שבת",
		"ינו׳ פבר׳ מרץ אפר׳ מאי יוני יולי אוג׳ ספט׳ אוק׳ נוב׳ דצמ׳", "ינואר פברואר מרץ אפריל מאי יוני יולי אוגוסט ספטמבר אוקטובר נובמבר דצמבר"},
	"he in": {"א ב ג ד ה ו ש", "ראשון שני שלישי רביעי חמישי שישי שבת",
		"בינו׳ בפבר׳ במרץ באפר׳ במאי ביוני ביולי באוג׳ בספט׳ באוק׳ בנוב׳ בדצמ׳", "בינואר בפברואר במרץ באפריל במאי ביוני ביולי באוגוסט בספטמבר באוקטובר בנובמבר בדצמבר"},
	"ar": {"الأحد الإثنين الثلاثاء الأربعاء الخميس الجمعة السبت", "الأحد الاثنين الثلاثاء الأربعاء الخميس الجمعة السبت",
		"يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر", "يناير فبراير مارس إبريل مايو يونيه يوليه أغسطس سبتمبر أكتوبر نوفمبر ديسمبر"},
	"ar-DZ": {"الأحد الإثنين الثلاثاء الأربعاء الخميس الجمعة السبت", "الأحد الاثنين الثلاثاء الأربعاء الخميس الجمعة السبت",
		"جانفي فيفري مارس أفريل ماي جوان جويلية أوت سبتمبر أكتوبر نوفمبر ديسمبر", "يناير فبراير مارس أبريل ماي يونيو يوليوز غشت شتنبر أكتوبر نونبر دجنبر"},
	"el": {"Κυρ Δευ Τρί Τετ Πέμ Παρ Σάβ", "Κυριακή Δευτέρα Τρίτη Τετάρτη Πέμπτη Παρασκευή Σάββατο",
		"Ιαν Φεβ Μαρ Απρ Μαΐ Ιουν Ιουλ Αυγ Σεπ Οκτ Νοε Δεκ", "Ιανουαρίου Φεβρουαρίου Μαρτίου Απριλίου Μαΐου Ιουνίου Ιουλίου Αυγούστου Σεπτεμβρίου Οκτωβρίου Νοεμβρίου Δεκεμβρίου"},
}

// Every day and month of every language, in every order and zone, is the moment
// that the numbers say.
func TestDatesInAllLanguages(t *testing.T) {
	zoneTexts := map[string]int{"+0100": 3600, "-05:30": -19800, "Z": 0, "GMT+2": 7200, "+0200 CEST": 7200, "GMT -0300": -10800, "XYZ +0900": 32400, "": 0}
	for name, hours := range zones() {
		zoneTexts[strings.ToUpper(name)] = int(hours * 3600)
	}
	// D is the day of the week, d the day, M the month, Y the year, T the time, Z
	// the zone.
	orders := []string{"D, d M Y T Z", "D d M Y T Z", "D. d. M. Y T Z", "d M Y T Z", "D, M d, Y T Z", "M d, Y T Z", "D M d T Z Y",
		"D d M, Y T Z", "D,d-M-Y T Z", "Y. M. d. T Z", "D, d de M de Y T Z", "D d M Y à T Z", "T Z D, d M Y", "D Y-m-dTTZ", "D, d.m.Y T Z", "D Y/m/d T Z"}
	zoneNames := make([]string, 0, len(zoneTexts))
	for name := range zoneTexts {
		zoneNames = append(zoneNames, name)
	}
	n := 0
	for language, l := range dateLanguages {
		for _, days := range []string{l.days, l.fullDays} {
			for _, months := range []string{l.months, l.fullMonths} {
				days, months := strings.Fields(days), strings.Fields(months)
				if len(days) != 7 || len(months) != 12 {
					t.Fatalf("%s: %d days, %d months", language, len(days), len(months))
				}
				for d, day := range days {
					for m, month := range months {
						for _, order := range orders {
							n++
							zone := zoneNames[n%len(zoneNames)]
							if zone == "" && order[0] == 'T' {
								continue // "10:14 pt, 16 lis" could be Pacific time
							}
							clock := []string{"00:38:15", "19:48"}[n/len(orders)%2]
							s := strings.NewReplacer("D", day, "d ", "16 ", "d,", "16,", "d.", "16.", "d-", "16-", "dT", "16T", "M", month, "m", fmt.Sprintf("%02d", m+1),
								"Y", "2022", "T", clock, "Z", zone, "de", "de").Replace(order)
							if order == "D Y-m-dTTZ" {
								s = fmt.Sprintf("%s, 2022-%02d-16T%s%s", day, m+1, clock, zone)
							}
							var hh, mm, ss int
							fmt.Sscanf(clock, "%d:%d:%d", &hh, &mm, &ss)
							want := time.Date(2022, time.Month(m+1), 16, hh, mm, ss, 0, time.UTC).Add(-time.Duration(zoneTexts[zone]) * time.Second)
							if got, ok := Parse(s); !ok || !got.Equal(want) {
								t.Errorf("%s, day %d, %q: got %v %v, want %v", language, d, s, got, ok, want)
							}
						}
					}
				}
			}
		}
	}
}

// A word is a month or a day of the week by where it stands and what else there is.
func TestAmbiguousDates(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"mer, 16 nov 2022 00:38:15 +0100", "2022-11-15T23:38:15Z"},
		{"mar, 15 nov 2022 00:38:15 +0100", "2022-11-14T23:38:15Z"},
		{"mar., 15 mars 2022 10:00:00 +0100", "2022-03-15T09:00:00Z"},
		{"mar 15 mar 2022 10:00", "2022-03-15T10:00:00Z"},
		{"Mar 15, 2022 10:00", "2022-03-15T10:00:00Z"},
		{"15 mar 2022 10:00", "2022-03-15T10:00:00Z"},
		{"2022 mar 15 10:00", "2022-03-15T10:00:00Z"},
		{"mar, 15/11/2022 10:00", "2022-11-15T10:00:00Z"},
		{"mar 15.11.2022", "2022-11-15T00:00:00Z"},
		{"mar, 2022-11-15T10:00:00+01:00", "2022-11-15T09:00:00Z"},
		{"martedì 15 novembre 2022, 10:00", "2022-11-15T10:00:00Z"},
		{"Paz, 16 Eki 2022 10:00:00 +0300", "2022-10-16T07:00:00Z"},
		{"paź 16, 2022", "2022-10-16T00:00:00Z"},
		{"Mi, 16 Nov 2022 00:38:15 +0100", "2022-11-15T23:38:15Z"},
		{"pt, 18 lis 2022 10:00:00 +0100", "2022-11-18T09:00:00Z"}, // not Pacific time
		{"Wendesday, 16 Nov 2022 10:00:00 EST", "2022-11-16T15:00:00Z"},
		{"Thrusday, 17 November 2022 10:00 -0500", "2022-11-17T15:00:00Z"},
		{"mercredi 16 novembre 2022 à 10h14", "2022-11-16T10:14:00Z"},
		{"16 novembre 2022 à 10h", "2022-11-16T10:00:00Z"},
		{"miércoles, 16 de noviembre de 2022 a las 10:14 p.m.", "2022-11-16T22:14:00Z"},
		{"onsdag den 16. november 2022 kl. 10.14", "2022-11-16T10:14:00Z"},
		{"2022年11月16日 10:14:55", "2022-11-16T10:14:55Z"},
		{"2022년 11월 16일 10:14", "2022-11-16T10:14:00Z"},
		{"Среда, 16 ноября 2022 г. 10:14 MSK", "2022-11-16T07:14:00Z"},
		{"Friday, November 18, 2022 - 12:00", "2022-11-18T12:00:00Z"},
		{"2022-11-18 – 12:00 CET", "2022-11-18T11:00:00Z"},
		{"18/11/2022 | 12:00", "2022-11-18T12:00:00Z"},
		{"Fri, 18 Nov 2022 @ 3pm", "2022-11-18T15:00:00Z"},
		{"2022-11-18T12:00:00+00:0", "2022-11-18T12:00:00Z"},
		{"Fri, 18 Nov 2022 12:00:00 +05:3", "2022-11-18T06:30:00Z"},
		{"Fri, 18 Nov 2022 12:00:00 EST5EDT", "2022-11-18T17:00:00Z"},
		{"Mon, 18 Jul 2022 12:00:00 EST5EDT", "2022-07-18T16:00:00Z"},
		{"Mon, 18 Jul 2022 12:00:00 PST8PDT", "2022-07-18T19:00:00Z"},
		{"Fri, 18 Nov 2022 12:00:00 Europe/Berlin", "2022-11-18T11:00:00Z"},
		{"Mon, 18 Jul 2022 12:00:00 Europe/Berlin", "2022-07-18T10:00:00Z"},
		{"2022-07-18 12:00 America/Argentina/Buenos_Aires", "2022-07-18T15:00:00Z"},
		{"2022-07-18T12:00:00[America/New_York]", "2022-07-18T16:00:00Z"},
		{"2022-11-18T12:00:00+01:00[Europe/Berlin]", "2022-11-18T11:00:00Z"},
		{"2022-11-18T12:00:00+03:00[Europe/Berlin]", "2022-11-18T09:00:00Z"}, // the number says more
		{"2022-11-18T12:00:00Z[Nowhere/Atall]", "2022-11-18T12:00:00Z"},
		{"2022-11-18T12:00:00+01:00 (Europe/Berlin)", "2022-11-18T11:00:00Z"},
		{"יום שישי, 18 בנובמבר 2022 12:00", "2022-11-18T12:00:00Z"},
		{"ב-18 בנובמבר 2022 12:00", "2022-11-18T12:00:00Z"},
		{"الجمعة، 18 نوفمبر 2022 03:00 م", "2022-11-18T15:00:00Z"},
		{"١٨ نوفمبر ٢٠٢٢ ١٢:٠٠", "2022-11-18T12:00:00Z"},
		{"18 تشرين الثاني 2022 12:00", "2022-11-18T12:00:00Z"},
		{"3 كانون الأول 2022 12:00", "2022-12-03T12:00:00Z"},
		{"3 كانون الثاني 2022", "2022-01-03T00:00:00Z"},
		{"5 آب 2022", "2022-08-05T00:00:00Z"},
		{"금, 18 11월 2022 12:00:00 +0900", "2022-11-18T03:00:00Z"},
		{"11월 18, 2022 오후 3:00", "2022-11-18T15:00:00Z"},
		{"11월 18일 2022년 12:00", "2022-11-18T12:00:00Z"},
		{"2022년 11월 18일 12:00", "2022-11-18T12:00:00Z"},
		{"周五, 18 11月 2022 12:00:00 +0800", "2022-11-18T04:00:00Z"},
		{"周五, 18 十一月 2022 12:00:00 +0800", "2022-11-18T04:00:00Z"},
		{"18 二月 2022", "2022-02-18T00:00:00Z"},
	} {
		got, ok := Parse(test.in)
		if s := got.Format(time.RFC3339Nano); !ok || s != test.want {
			t.Errorf("%q: got %s %v, want %s", test.in, s, ok, test.want)
		}
	}
	for _, s := range []string{
		"mar", "mar 2022", "mardi 2022", "mar, 31 feb 2022", "mer, 31 nov 2022", "mar, 16 nov 2022 25:00:00", "nov mar 16 2022",
		"16 nov mar 2022", "mercredi", "mer, 32 nov 2022", "16 nov 2022 10hours", "16 nov 2022 25h00", "mar, 2022-13-15", "mer, 16 foo 2022", "nov, 31/11/2022",
		"Fri, 18 Nov 2022 12:00 - 0500", "2022 - 11 - 18", "18 Nov 2022 12:00:00 +00:1", "18 Nov 2022 12:00 Nowhere/Atall", "18 Nov 2022 12:00 EST5CDT",
		"18 Nov 2022 12:00 ../../etc/passwd", "13월 18 2022", "31 二月 2022", "١٨ ١٣ ٢٠٢٢", "-", "[Europe/Berlin]", "11월",
	} {
		if got, ok := Parse(s); ok {
			t.Errorf("%q: got %s, want it refused", s, got)
		}
	}
}
