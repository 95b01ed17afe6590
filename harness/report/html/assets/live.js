// Of `harness report --serve`: takes new evaluations from the server. Its answer is the whole page, of which the data is read.

const PAUSE_MS = 2000;
const live = document.getElementById("live");

async function takeNews() {
  const answer = await fetch(location.pathname, { cache: "no-store", headers: { "If-None-Match": main.dataset.state } });
  live.textContent = "live";
  if (answer.status === 304) return;
  if (!answer.ok) { location.reload(); return; } // the server says why, such as no evaluation left
  const news = new DOMParser().parseFromString(await answer.text(), "text/html");
  await unpackStart(news);
  lastList.rows = null; // row numbers change when an evaluation replaces an earlier one
  Object.assign(main.dataset, news.getElementById("main").dataset);
  // A candidate's page is kept as it is.
  if (!location.hash.startsWith("#/candidate/")) { const top = scrollY; route(); scrollTo(0, top); }
}

function watch() {
  takeNews().catch(() => { live.textContent = "the server has ended"; }).finally(() => setTimeout(watch, PAUSE_MS));
}
setTimeout(watch, PAUSE_MS);
