// Loads the page anew when the server says that it changed, and puts the parts
// marked data-live into place. Without this script the page works the same,
// by loading it again.
"use strict";

const said = document.getElementById("live");
let asking = false;
let again = false;

async function refresh() {
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const now = fresh.querySelector('[data-live="' + part.dataset.live + '"]');
      if (!now || now.innerHTML === part.innerHTML) continue;
      const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
      const left = [...part.querySelectorAll(".scroll")].map((s) => s.scrollLeft);
      part.replaceChildren(...now.childNodes);
      part.querySelectorAll(".scroll").forEach((s, i) => (s.scrollLeft = left[i] || 0));
      if (focused && document.getElementById(focused)) document.getElementById(focused).focus();
    }
  } finally {
    asking = false;
    if (again) {
      again = false;
      refresh();
    }
  }
}

const events = new EventSource("/events");
events.addEventListener("change", refresh);
events.addEventListener("open", () => (said.textContent = "Live"));
events.addEventListener("error", () => (said.textContent = "Not live: the server does not answer"));
addEventListener("pagehide", () => events.close());
