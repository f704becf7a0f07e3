// A dialog: it keeps the focus, gives it back to its button, and Escape leaves it.

import { useEffect, useLayoutEffect, useRef } from "../vendor/hooks.js";
import { html } from "./html.js";

const FOCUSABLE = "a[href], button:not([disabled]), input:not([disabled]), select, textarea, [tabindex='0']";

/** @param props title, close, children, footer: the safe action comes first; submit: what Enter in a field does */
export function Dialog({ title, close, submit, children, footer, wide = false }) {
  const box = useRef(null);
  // At once, so that what is typed next goes where the focus will be.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const first = box.current.querySelector("[data-first]") ?? box.current.querySelector(`.pad :is(${FOCUSABLE})`) ?? box.current.querySelector("footer button");
    first?.focus();
    return () => before?.isConnected && before.focus();
  }, []);
  useEffect(() => {
    // A button that is switched off while its call is under way loses the focus to the document.
    const outside = (event) => {
      // Null: the dialog has closed, and the browser has not painted yet.
      if (!box.current || box.current.contains(event.target)) return;
      if (event.key === "Escape") close();
      if (event.key !== "Tab") return;
      event.preventDefault();
      box.current.querySelector(FOCUSABLE)?.focus();
    };
    addEventListener("keydown", outside);
    return () => removeEventListener("keydown", outside);
  });
  const keys = (event) => {
    event.stopPropagation();
    if (event.key === "Escape") close();
    if (event.key !== "Tab") return;
    const all = [...box.current.querySelectorAll(FOCUSABLE)].filter((each) => each.tabIndex >= 0 && each.offsetParent);
    const edge = event.shiftKey ? all[0] : all[all.length - 1];
    if (document.activeElement === edge) {
      (event.shiftKey ? all[all.length - 1] : all[0]).focus();
      event.preventDefault();
    }
  };
  const send = (event) => {
    event.preventDefault();
    submit?.();
  };
  return html`<div class="scrim" onKeyDown=${keys} onPointerDown=${(event) => event.target === event.currentTarget && close()}>
    <form class=${`dialog ${wide ? "broad" : ""}`} role="dialog" aria-modal="true" aria-label=${title} ref=${box} onSubmit=${send}>
      <header><h2>${title}</h2></header>
      <div class="pad">${children}</div>
      <footer>${footer}</footer>
    </form>
  </div>`;
}
