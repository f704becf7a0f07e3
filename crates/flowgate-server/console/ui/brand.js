// The mark, the node and its version.

import { html } from "./html.js";
import { Text } from "./basics.js";

export const Brand = ({ node = "Flowgate", version }) => html`
  <svg viewBox="0 0 18 18" aria-hidden="true"><rect x=".75" y=".75" width="16.5" height="16.5" rx="4" fill="none" stroke="currentColor" stroke-width="1.5" />
    <path d="M4.5 6h5M4.5 9h9M4.5 12h3" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" />
    <path d="M11 12.2h2.6" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" class="denied" /></svg>
  <b><${Text} of=${node} most=${24} /></b>${version && html`<span>${version}</span>`}`;
