// The sample of traffic that Try uses: whether one is being recorded is shown in the bar of every page.

import { cell } from "./cell.js";
import { sourceOf } from "./poll.js";

const EVERY_S = 5;
const source = sourceOf("/v1/sample");

/** The last answer of /v1/sample; null before the first. */
export const sample = cell(null);

export function watchSample() {
  source.state.watch(({ data }) => sample.set(data));
  source.watch("always", EVERY_S);
}
