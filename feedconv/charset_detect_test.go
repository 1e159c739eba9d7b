package feedconv

import (
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// texts are what feeds say, a few sentences in each language.
var texts = map[string]string{
	"ja":      "東京で開かれた記者会見で、政府は新しい経済対策を発表しました。来年度の予算案には、子育て支援や防災の費用が含まれています。野党は財源が不明だと批判しています。昨日のブログでカメラのレビューを書きましたが、たくさんのコメントをいただきありがとうございます。",
	"zh":      "北京今天召开新闻发布会，介绍今年上半年经济运行情况。专家表示，消费市场持续恢复，新能源汽车销量增长较快。下面是我昨天写的一篇关于摄影的博客文章，欢迎大家留言讨论。",
	"zh-Hant": "台北市政府今天舉行記者會，說明捷運新路線的規劃。專家表示，交通建設對地方發展有幫助。這是我昨天寫的一篇關於攝影的文章，歡迎大家留言討論。",
	"ko":      "서울에서 열린 기자회견에서 정부는 새로운 경제 대책을 발표했다. 내년 예산안에는 육아 지원과 방재 비용이 포함되어 있다. 어제 블로그에 카메라 사용기를 올렸는데 많은 댓글 감사합니다.",
	"ru":      "Сегодня в Москве состоялась пресс-конференция, на которой представили новый план развития экономики. Эксперты считают, что рост цен замедлится к концу года. Вчера я написал в блоге обзор фотоаппарата, спасибо всем за комментарии.",
	"uk":      "Сьогодні в Києві відбулася прес-конференція, на якій представили новий план розвитку економіки. Експерти вважають, що зростання цін сповільниться до кінця року. Учора я написав у блозі огляд фотоапарата, дякую всім за коментарі.",
	"bg":      "Правителството обяви вчера в София нови мерки за икономиката. Децата ще се върнат утре на училище, а времето ще бъде хубаво. Благодаря на всички за коментарите и хубав ден.",
	"el":      "Η κυβέρνηση ανακοίνωσε χθες στην Αθήνα νέα μέτρα για την οικονομία. Τα παιδιά θα επιστρέψουν αύριο στο σχολείο και ο καιρός θα είναι καλός. Ευχαριστώ όλους για τα σχόλια.",
	"fr":      "Le gouvernement a annoncé hier à Paris une série de mesures destinées à relancer l’économie. Les élèves rentrent à l’école après les vacances d’été, et la météo s’annonce très agréable. Ça, c’était mon avis sur le dernier appareil photo, merci à tous pour vos commentaires où vous voulez. Voilà. Œuvre d’art à 5 €.",
	"de":      "Die Bundesregierung hat gestern in München neue Maßnahmen für die Wirtschaft angekündigt. Schüler können über die Straße gehen, während die Bäume grün sind. Schöne Grüße aus Köln und vielen Dank für die „Kommentare“ über die Größe. Übung.",
	"es":      "El Gobierno anunció ayer en España nuevas medidas para la economía. Los niños volverán a la escuela mañana después de las vacaciones, según informó el ministro de Educación. ¿Qué opináis? ¡Muchas gracias por los comentarios! Año nuevo.",
	"pt":      "O governo anunciou ontem em São Paulo novas medidas para a economia. As crianças voltarão à escola amanhã, após as férias, segundo informação do ministério da Educação. Não há previsão de alterações. Coração.",
	"it":      "Il governo ha annunciato ieri nuove misure perché l’economia è in difficoltà. La città è più bella, e così il caffè costerà di più. Chissà se sarà possibile, ma già lunedì ci sarà la novità. Perché?",
	"sv":      "Regeringen meddelade i går nya åtgärder för ekonomin. Det är ännu för tidigt att säga när förändringarna träder i kraft, men många hoppas på våren. Tack för alla hälsningar från Göteborg och Malmö. Åäö.",
	"da":      "Regeringen meddelte i går nye tiltag for økonomien. Det er endnu for tidligt at sige, hvornår ændringerne træder i kraft, men mange håber på foråret. Tak for hilsnerne fra København og Århus. Rødgrød.",
	"nl":      "De regering heeft gisteren nieuwe maatregelen voor de economie aangekondigd, één voor één. Het is één van de mooiste foto’s die ik ooit gezien heb, geïnspireerd door de zee. Coördinatie en ideeën zijn nodig.",
	"fi":      "Hallitus ilmoitti eilen uusista toimista talouden elvyttämiseksi. On vielä liian aikaista sanoa, milloin muutokset tulevat voimaan, mutta moni toivoo kevättä. Kiitos kaikille hyvistä kommenteista ja terveisiä Jyväskylästä. Hyvää yötä.",
	"is":      "Ríkisstjórnin tilkynnti í gær nýjar aðgerðir í efnahagsmálum. Það er of snemmt að segja hvenær breytingarnar taka gildi. Þakka þér fyrir allar athugasemdirnar.",
	"en":      "The government said “new measures” for the economy are coming — it’s too early to tell when. The café’s naïve résumé costs £5 or €6. Thanks for all the comments… it’s great. It’s only a test. Don’t worry. Prices © 2004 — all rights reserved. 20°C today ½ price.",
	"pl":      "Rząd ogłosił wczoraj w Warszawie nowe działania dla gospodarki. Dzieci wrócą jutro do szkoły, a pogoda będzie piękna. Dziękuję wszystkim za komentarze i życzę miłego dnia, ponieważ święta są już blisko. Łódź. Żółw.",
	"cs":      "Vláda včera v Praze oznámila nová opatření pro ekonomiku. Děti se zítra vrátí do školy a počasí bude příjemné. Děkuji všem za komentáře a přeji hezký den, protože svátky jsou již blízko. Příliš žluťoučký kůň.",
	"hu":      "A kormány tegnap Budapesten új intézkedéseket jelentett be a gazdaság számára. A gyerekek holnap visszatérnek az iskolába, és szép idő várható. Köszönöm mindenkinek a hozzászólásokat, jövő héten újra írok. Árvíztűrő.",
	"sk":      "Vláda včera v Bratislave oznámila nové opatrenia pre ekonomiku. Deti sa zajtra vrátia do školy a počasie bude príjemné. Ďakujem všetkým za komentáre a želám pekný deň, pretože sviatky sú už blízko. Kŕdeľ šťastných ďatľov.",
	"ro":      "Guvernul a anunţat ieri la Bucureşti noi măsuri pentru economie. Copiii se întorc mâine la şcoală, iar vremea va fi frumoasă. Mulţumesc tuturor pentru comentarii şi vă doresc o zi bună, pentru că sărbătorile sunt aproape.",
	"hr":      "Vlada je jučer u Zagrebu objavila nove mjere za gospodarstvo. Djeca će se sutra vratiti u školu, a vrijeme će biti lijepo. Hvala svima na komentarima i želim vam ugodan dan, jer su blagdani već blizu. Đaci.",
	"lt":      "Vyriausybė vakar Vilniuje paskelbė naujas priemones ekonomikai. Vaikai rytoj grįš į mokyklą, o oras bus gražus. Ačiū visiems už komentarus ir linkiu geros dienos, nes šventės jau arti. Žąsų ežeras ūžė.",
	"lv":      "Valdība vakar Rīgā paziņoja jaunus pasākumus ekonomikai. Bērni rīt atgriezīsies skolā, un laiks būs jauks. Paldies visiem par komentāriem un novēlu jauku dienu, jo svētki jau ir tuvu. Ķirši šķērso ģimeni.",
	"et":      "Valitsus teatas eile Tallinnas uutest meetmetest majanduse elavdamiseks. Lapsed lähevad homme tagasi kooli ja ilm tuleb ilus. Tänan kõiki kommentaaride eest ja soovin ilusat päeva, sest pühad on juba lähedal. Šokolaad, žanr, õunad.",
	"th":      "รัฐบาลประกาศมาตรการเศรษฐกิจใหม่เมื่อวานนี้ที่กรุงเทพฯ เด็กๆ จะกลับไปโรงเรียนในวันพรุ่งนี้และอากาศจะดี ขอบคุณทุกท่านสำหรับความคิดเห็น เมื่อวานผมเขียนรีวิวกล้องในบล็อก",
	"he":      "הממשלה הודיעה אתמול בירושלים על צעדים חדשים לכלכלה. הילדים יחזרו מחר לבית הספר ומזג האוויר יהיה נעים. תודה לכולם על התגובות. אתמול כתבתי בבלוג סקירה על מצלמה.",
	"ar":      "أعلنت الحكومة أمس في القاهرة إجراءات جديدة للاقتصاد. سيعود الأطفال غدا إلى المدرسة وسيكون الطقس جميلا. شكرا للجميع على التعليقات. كتبت أمس في المدونة مراجعة للكاميرا.",
	"ca":      "El govern va anunciar ahir a Barcelona noves mesures per a l’economia. Els nens tornaran demà a l’escola i el temps serà agradable. Gràcies a tothom pels comentaris, això és tot. L’àvia col·lecciona pingüins i raïm. Així ho féu.",
	"ga":      "D’fhógair an rialtas inné i mBaile Átha Cliath bearta nua don gheilleagar. Rachaidh na páistí ar ais ar scoil amárach agus beidh an aimsir go hálainn. Go raibh maith agaibh as na tuairimí.",
	"tr":      "Hükümet dün Ankara’da ekonomi için yeni önlemler açıkladı. Çocuklar yarın okula dönecek ve hava güzel olacak. Yorumlarınız için herkese teşekkür ederim, çünkü bayram yaklaşıyor ve şimdiden iyi dileklerimi gönderiyorum. Işık.",
}

// sentences returns a text whole and in sentences.
func sentences(text string) []string {
	out := []string{text}
	for s := range strings.SplitSeq(strings.ReplaceAll(text, "。", "。\n"), "\n") {
		for s := range strings.SplitAfterSeq(s, ". ") {
			if s = strings.TrimSpace(s); s != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

func document(text string) string {
	return "<rss version=\"2.0\"><channel><title>" + text + "</title><link>http://example.com/</link><item><title>" + text +
		"</title><guid>http://example.com/1</guid><pubDate>Thu, 01 Jan 2004 19:48:21 GMT</pubDate><description>&lt;p&gt;" + text + "</description></item></channel></rss>"
}

func decode(t *testing.T, raw string) string {
	t.Helper()
	got, _, err := decodeBytes([]byte(raw), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// Documents that say no charset, and are in one that can be told from its looks.
func TestDetectsCharset(t *testing.T) {
	for language, charsets := range map[string][]encoding.Encoding{
		"ja": {japanese.ShiftJIS, japanese.EUCJP}, "zh": {simplifiedchinese.GB18030, simplifiedchinese.GBK},
		"zh-Hant": {traditionalchinese.Big5}, "ko": {korean.EUCKR},
		"ru": {charmap.KOI8R, charmap.Windows1251, charmap.ISO8859_5, charmap.CodePage866}, "uk": {charmap.Windows1251, charmap.KOI8U},
		"bg": {charmap.Windows1251}, "el": {charmap.ISO8859_7}, "th": {charmap.Windows874}, "he": {charmap.Windows1255},
	} {
		for _, enc := range charsets {
			for _, s := range sentences(texts[language]) {
				raw, err := enc.NewEncoder().String(document(s))
				if err != nil {
					t.Fatal(language, err)
				}
				if got := decode(t, raw); got != document(s) {
					t.Errorf("%s in %v: %.200q, want %s", language, enc, got, s)
				}
			}
		}
	}
}

// Languages whose alphabets show their charset are read right as a whole, and in most
// sentences (two in five of Turkish); one with too little evidence is windows-1252, never
// another one.
func TestDetectsLatinCharsets(t *testing.T) {
	for languages, charsets := range map[string][]*charmap.Charmap{
		"pl cs sk hu ro hr": {charmap.Windows1250, charmap.ISO8859_2}, "tr": {charmap.Windows1254}, "lt lv et": {charmap.Windows1257}, "ar": {charmap.Windows1256},
	} {
		for _, enc := range charsets {
			right, all := 0, 0
			for language := range strings.FieldsSeq(languages) {
				for i, s := range sentences(texts[language]) {
					raw, err := enc.NewEncoder().String(strings.NewReplacer("„", "\"", "’", "'").Replace(document(s)))
					if err != nil {
						t.Fatal(language, err)
					}
					want, _ := enc.NewDecoder().String(raw)
					western, _ := charmap.Windows1252.NewDecoder().String(raw)
					got := decode(t, raw)
					if all++; got == want {
						right++
					} else if i == 0 || got != western {
						t.Errorf("%s in %v: %.200q, want %s", language, enc, got, s)
					}
				}
			}
			if right*5 < all*2 {
				t.Errorf("%v: %d of %d", enc, right, all)
			}
		}
	}
}

// ISO-8859-15 is told by the euro sign and by letters inside of words.
func TestDetectsLatin9(t *testing.T) {
	for _, s := range []string{"Cela coûte 5 €, ma chère sœur.", "Le cœur a ses raisons", "Prix : 12 €", "Sa sœur et le chœur", "Une œuvre du cœur, bœuf et œufs"} {
		raw, err := charmap.ISO8859_15.NewEncoder().String(document(s))
		if err != nil {
			t.Fatal(err)
		}
		if got := decode(t, raw); got != document(s) {
			t.Errorf("%.100q, want %s", got, s)
		}
	}
	for _, s := range []string{"½ cup, 1½cups of sugar and ¼ of salt", "don´t, it´s ¸ ¨ ¦ naïve", "1¾ × 2", "½cup", "été ½ ¾"} {
		raw, err := charmap.Windows1252.NewEncoder().String(document(s))
		if err != nil {
			t.Fatal(err)
		}
		if got := decode(t, raw); got != document(s) {
			t.Errorf("%.100q, want %s", got, s)
		}
	}
}

// Text in a Western charset is not taken for another, in pieces of any length.
func TestWesternTextsStay(t *testing.T) {
	western := strings.Fields("fr de es pt it sv da nl fi is en ca ga")
	check := func(what, piece string, enc encoding.Encoding) {
		t.Helper()
		raw, err := encoding.ReplaceUnsupported(enc.NewEncoder()).String(document(piece))
		if err != nil {
			t.Fatal(err)
		}
		raw = strings.ReplaceAll(raw, "\x1a", "?")
		want, err := charmap.Windows1252.NewDecoder().String(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := decode(t, raw); got != want {
			t.Errorf("%s in %v: %.300q, want %q", what, enc, got, piece)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, language := range western {
		for _, s := range sentences(texts[language]) {
			if got := decode(t, document(s)); got != document(s) {
				t.Errorf("UTF-8: %q, want %q", got, s)
			}
			words := strings.Fields(s)
			for _, enc := range []encoding.Encoding{charmap.Windows1252, charmap.ISO8859_1} {
				for i, word := range words {
					check(language, word, enc)
					check(language, strings.Join(words[i:min(i+2+r.IntN(9), len(words))], " "), enc)
				}
				check(language, s, enc)
			}
		}
		// Two languages together, as in a feed about another country.
		for _, other := range western {
			check(language+"+"+other, texts[language]+" "+texts[other], charmap.Windows1252)
		}
	}
	// Names of everywhere.
	for _, s := range []string{"Núñez, Ødegaard, Sørloth, Müller, Šeško, Þór Guðmundsson, Ýmir", "São Tomé, Åland, Göteborg, Besançon, Ísafjörður, La Coruña", "Renée Žižek, Hervé Šarūnas"} {
		check("names", s, charmap.Windows1252)
	}
}

// A charset that fits better wins over the declared one.
func TestStrayBytes(t *testing.T) {
	for _, label := range []string{"windows-1252", "ISO-8859-1", "windows-1251", "koi8-r", "iso-8859-2"} {
		good := strings.Repeat("Žluťoučký kůň “příliš” ", 60)
		raw := `<?xml version="1.0" encoding="` + label + `"?>` + document(good+"\x93stray ")
		want := `<?xml version="1.0" encoding="` + label + `"?>` + document(good+"“stray ")
		if got := decode(t, raw); got != want {
			t.Errorf("UTF-8 declared as %s: %.300q", label, got)
		}
	}
	// A stray byte in a text of its own charset costs one character.
	raw, err := japanese.ShiftJIS.NewEncoder().String(document(texts["ja"]))
	if err != nil {
		t.Fatal(err)
	}
	raw = strings.Replace(raw, "</description>", "\xff</description>", 1)
	for _, label := range []string{`<?xml version="1.0" encoding="Shift_JIS"?>`, `<?xml version="1.0" encoding="cp932"?>`} {
		got, warnings, err := decodeBytes([]byte(label+raw), Options{})
		if want := strings.Replace(document(texts["ja"]), "</description>", "\uFFFD</description>", 1); err != nil || string(got) != label+want || len(warnings) != 1 {
			t.Errorf("%q: %v %v %.300q", label, warnings, err, got)
		}
	}
	// A few sequences that could be UTF-8 make no text of it.
	raw, _ = charmap.KOI8R.NewEncoder().String(`<?xml version="1.0" encoding="koi8-r"?>` + document("Её моё твоё всё ещё"))
	if got := decode(t, raw); !strings.Contains(got, "Её моё твоё всё ещё") {
		t.Errorf("%.300q", got)
	}
}

// Detection looks at a bounded part, wherever it begins.
func TestDetectsFarBehind(t *testing.T) {
	raw, _ := charmap.KOI8R.NewEncoder().String(strings.Repeat("<!-- x -->\n", 50_000) + document(strings.Repeat(texts["ru"], 1000)))
	if got := decode(t, raw); !strings.Contains(got, texts["ru"]) {
		t.Errorf("%.300q", got)
	}
}
