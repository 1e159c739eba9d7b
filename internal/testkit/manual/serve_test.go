package manual

// serving starts a server, which ends with the script and whose messages are in the file
// served, for examples of clients. atServer is the edit that puts its URL into them.
const (
	serving = `export no_proxy=127.0.0.1
: >served
lektor-serve --listen 127.0.0.1:0 2>served &
server=$!
trap 'kill $server; pwd >"$HOME/.pwd"' EXIT
until grep -q listening served; do kill -0 $server; done 2>/dev/null`
	url      = `$(sed -n 's/.*listening on //p' served)`
	atServer = `s,http://127.0.0.1:8091,"` + url + `",`
)

// serve is lektor-serve(1).
var serve = []step{
	{
		starts: "lektor-serve passwd ann", except: "it needs systemd and Tailscale",
		then: `grep '^systemctl --user enable --now lektor-serve.socket lektor-serve.service$' "$example"
test -e "$root/scripts/systemd/lektor-serve.socket" -a -e "$root/scripts/systemd/lektor-serve.service"
grep "^ListenStream=127.0.0.1:$(sed -n 's/^tailscale serve --bg //p' "$example")\$" "$root/scripts/systemd/lektor-serve.socket"`,
	},
	{
		starts: "feeds.example {", except: "the configuration of a proxy",
		then: `grep 'reverse_proxy 127.0.0.1:8091' "$example"; ! command -v caddy || caddy validate --adapter caddyfile --config "$example"`,
	},
	{
		starts: "location / {", except: "the configuration of a proxy",
		then: `grep 'proxy_pass http://127.0.0.1:8091;' "$example"
if command -v nginx; then
	mkdir nginx
	printf 'error_log stderr; pid %s/nginx/pid; events {}\nhttp { server { listen 127.0.0.1:8080;\n%s\n} }\n' "$PWD" "$(cat "$example")" >nginx/conf
	nginx -t -p "$PWD/nginx" -c "$PWD/nginx/conf"
fi`,
	},
	{
		starts: "lektor-serve passwd ann", library: true,
		edit: `s/^/echo 'correct horse battery' | /`, // there is no terminal
		then: `grep "^ann.*$D$" "$HOME/.local/state/lektor-serve/users"`,
	},
	{
		starts: "lektor-serve tokens", needs: "curl",
		before: serving + `
curl -s -d Email=ann -d source=newsboat2.21 --data-urlencode 'Passwd=correct horse battery' "` + url + `/accounts/ClientLogin"`,
		out: `\A[a-z2-7]{8} +ann +20\S+ +newsboat2.21\n\z`,
	},
	{
		starts: "mkdir -p feeds/tmp feeds/new feeds/cur feeds/src",
		then:   `grep "^ann.*/work/feeds$" "$HOME/.local/state/lektor-serve/users"; test -z "$(lektor-serve tokens)"`,
	},
	{
		starts: "lektor-serve --listen :8091 --cert cert.pem --key key.pem", needs: "openssl",
		before: `openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -keyout key.pem -out cert.pem`,
		edit:   `s/:8091/127.0.0.1:0/; s/$/ 2>served/`, // a port that is free
		until:  `grep 'listening on https://127.0.0.1:' served`,
	},
	{
		starts: `curl -d Email=ann --data-urlencode 'Passwd=correct horse battery' \`, needs: "curl",
		given: serving, edit: atServer,
		out: `\ASID=(\S+)\nLSID=\S+\nAuth=\S+\n\z`,
	},
	{
		starts: `urls-source "feedhq"`, except: "the configuration of newsboat",
		then: `if command -v newsboat; then
	{ cat "$example"; echo 'feedhq-password "x"'; } | sed 's,https://feeds.example,http://127.0.0.1:1,; /eval/d' >newsboat.config
	: >urls
	newsboat -C newsboat.config -u urls -c cache.db -x print-unread 2>&1 | grep -v -i 'configuration\|unknown'
fi
grep '^feedhq-login "ann"$' "$example"`,
	},
	{
		starts: `lektor-serve tokens -o '{{.id}} {{.client}}' | sed -n 's/ newsboat.*//p' |`, needs: "curl",
		before: serving + `
for client in newsboat2.21 phone newsboat2.21; do
	curl -s -d Email=ann -d "source=$client" --data-urlencode 'Passwd=correct horse battery' "` + url + `/accounts/ClientLogin"
done`,
		then: `! lektor-serve tokens -o client | grep newsboat; lektor-serve tokens -o client | grep phone`,
	},
}
