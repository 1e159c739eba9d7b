// The script saves loading pages: keys, marks, ranges of ticks, and the line about new entries. It keeps no state;
// the page has all, and works without it.
"use strict";
{
	const $ = (s, in_ = document) => in_.querySelector(s);
	const list = $("#list"), entry = $("#entry"), said = $("#said");
	const go = (url) => { if (url) location = url; };

	// post sends a form with some fields more, and shows the message of the answer.
	const post = async (form, fields) => {
		const body = new URLSearchParams(new FormData(form));
		for (const [name, value] of Object.entries(fields)) body.set(name, value);
		body.set("back", location.pathname.split("/").pop() + location.search);
		const r = await fetch(form.action, { method: "POST", body, headers: { Accept: "text/x-message" }, keepalive: true });
		if (r.status === 401) location = "login";
		if (!r.ok) throw new Error(r.statusText);
		said.innerHTML = await r.text();
		const n = said.firstChild.dataset.unread;
		if (n) $("header b").textContent = +n || "";
	};
	const failed = (e) => { said.textContent = "This did not work: " + e.message; };

	// act marks the row of an entry in a list.
	const act = (row, key, what) => post(list, { e: key, do: what }).then(() => {
		if (what === "read" || what === "unread") row.classList.toggle("read", what === "read");
		else {
			const small = $("small", row), plain = small.textContent.replace("★ ", "");
			if (what === "star") small.prepend("★ ");
			else if (small.textContent !== plain) small.firstChild.textContent = small.firstChild.textContent.replace("★ ", "");
		}
	}).catch(failed);

	const links = list ? [...list.querySelectorAll(".entries a")] : [];
	const current = () => links.indexOf(document.activeElement.closest("li")?.querySelector("a") ??
		(document.activeElement === document.body && location.hash ? $(location.hash) : null));
	const move = (by) => {
		if (entry) return go($(by > 0 ? "link[rel=next]" : "link[rel=prev]")?.href);
		const next = links[Math.max(0, current() + by)];
		next?.focus();
		next?.scrollIntoView({ block: "nearest" });
	};
	const here = (do_) => { const a = links[current()]; if (a) do_(a.closest("li"), a.id.slice(1), a); };
	const toggle = (id, yes, no, has) => {
		if (entry) return $(id)?.click();
		here((row, key) => act(row, key, has(row) ? no : yes));
	};
	const help = async () => {
		const d = document.createElement("dialog");
		const page = new DOMParser().parseFromString(await (await fetch("help")).text(), "text/html");
		d.append(...$("main", page).children, Object.assign(document.createElement("form"), { method: "dialog", innerHTML: "<button>Close</button>" }));
		d.addEventListener("close", () => d.remove());
		document.body.append(d);
		d.showModal();
	};
	const keys = {
		j: () => move(1), n: () => move(1), k: () => move(-1), p: () => move(-1),
		o: () => here((_, __, a) => a.click()),
		v: () => entry ? $("#site") && open($("#site").href, "_blank", "noopener") : here((_, key) => open("site?id=" + key, "_blank", "noopener")),
		m: () => toggle("#m", "read", "unread", (row) => row.classList.contains("read")),
		s: () => toggle("#s", "star", "unstar", (row) => $("small", row).textContent.startsWith("★")),
		u: () => go($("[rel=up]")?.href ?? "unread"), A: () => $("#all")?.click(),
		"/": () => $("[type=search]") ? $("[type=search]").focus() : go("search"), "?": help,
		r: () => $("#refresh")?.requestSubmit(),
		"g u": () => go("unread"), "g s": () => go("starred"), "g f": () => go("feeds"),
	};
	let before = "";
	document.addEventListener("keydown", (e) => {
		if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input:not([type=checkbox]), textarea") || $("dialog[open]")) return;
		const do_ = keys[before + e.key];
		before = e.key === "g" ? "g " : "";
		if (do_) { e.preventDefault(); do_(); }
	});

	if (list) {
		// Coming back by the browser's own button shows the same list: the entries read meanwhile stay.
		const at = $("[name=at]", list), here_ = new URL(location);
		if (at && !here_.searchParams.has("at")) {
			here_.searchParams.set("at", at.value);
			history.replaceState(null, "", here_);
		}
		const ticks = [...list.querySelectorAll("[name=e]")];
		let last = -1;
		list.addEventListener("click", (e) => {
			const i = ticks.indexOf(e.target);
			if (i >= 0 && e.shiftKey && last >= 0) {
				for (let k = Math.min(i, last); k <= Math.max(i, last); k++) ticks[k].checked = e.target.checked;
			}
			if (i >= 0) last = i;
		});
		const newer = $("#newer"), query = new URLSearchParams(new FormData(list));
		query.delete("e");
		query.set("top", list.dataset.top);
		let tag = '"0"';
		setInterval(async () => {
			if (document.hidden) return;
			const r = await fetch("new?" + query, { headers: { "If-None-Match": tag } }).catch(() => null);
			if (!r || r.status !== 200) return;
			tag = r.headers.get("ETag");
			const n = +await r.text();
			newer.hidden = !n;
			newer.firstChild.textContent = n === 1 ? "1 new entry" : n + " new entries";
		}, 60000);
	}
	if (entry) {
		const mark = $("#m");
		const shown = (what) => {
			mark.value = what === "read" ? "unread" : "read";
			mark.textContent = what === "read" ? "Mark unread" : "Mark read";
		};
		if ("read" in entry.dataset) {
			post(entry, { do: "read" }).then(() => shown("read")).catch(failed);
			for (const b of document.querySelectorAll("[form=entry]")) {
				b.textContent = "Next";
				b.addEventListener("click", (e) => { e.preventDefault(); move(1); });
			}
		}
		entry.addEventListener("submit", (e) => {
			e.preventDefault();
			const b = e.submitter, what = b.value;
			post(entry, { do: what }).then(() => {
				if (b === mark) return shown(what);
				b.value = what === "star" ? "unstar" : "star";
				b.textContent = what === "star" ? "★ Starred" : "Star";
			}).catch(failed);
		});
	}
	if ($("[data-again]")) setTimeout(() => location.reload(), 5000);
}
