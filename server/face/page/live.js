// Loads the page again when the server says that it has changed, and replaces the
// parts marked data-live. It names the browser's time zone. All pages work without it.
"use strict";

const zone = document.getElementById("my-zone");
if (zone) zone.hidden = false; // the page to sign in has no footer
zone?.addEventListener("click", () => (document.getElementById("zone").value = Intl.DateTimeFormat().resolvedOptions().timeZone));
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

const liveStatus = document.getElementById("live");
let loading = false;
let again = false;

async function refresh() {
  if (loading) {
    again = true;
    return;
  }
  loading = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const now = fresh.querySelector('[data-live="' + part.dataset.live + '"]');
      for (const open of now ? part.querySelectorAll("details[open]") : []) {
        const same = open.id && now.querySelector("#" + open.id);
        if (same) same.open = true;
      }
      if (!now || now.innerHTML === part.innerHTML) continue;
      const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
      const left = [...part.querySelectorAll(".scroll")].map((s) => s.scrollLeft);
      part.replaceChildren(...now.childNodes);
      part.querySelectorAll(".scroll").forEach((s, i) => (s.scrollLeft = left[i] || 0));
      if (focused && document.getElementById(focused)) document.getElementById(focused).focus();
    }
  } finally {
    loading = false;
    if (again) {
      again = false;
      refresh();
    }
  }
}

if (liveStatus.dataset.follow !== undefined) {
  const events = new EventSource("/events");
  events.addEventListener("change", refresh);
  events.addEventListener("open", () => (liveStatus.textContent = "Live"));
  events.addEventListener("error", () => (liveStatus.textContent = "Not live: the server does not answer"));
  addEventListener("pagehide", () => events.close());
}
