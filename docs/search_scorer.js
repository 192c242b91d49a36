// The order of the site's search results: pages of measurements and of history, which have nearly every word,
// stand after all others, unless their own title is what was looked for. The other entries are Sphinx's.
const RECORDS = /^(decisions|tables|tables\/.*|benchmarks|srbench|changelog|architecture)$/;
var Scorer = {
  score: ([page, title, , , score, , kind]) => {
    const isNamed = kind === "title" && !title.includes(" > ");
    return RECORDS.test(page) && !isNamed ? score - 1000 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
