// The rows of a table that are in view, by their `data-name`.

import { useEffect, useRef, useState } from "../vendor/hooks.js";

const SETTLE_MS = 150;
/** So that a fast scroll does not ask for a long list. */
const MAX_ROWS = 50;

/** A ref for the body of the table, and the names of its rows in view, sorted. `of`: looks again when it changes. */
export function useRowsInView(of) {
  const body = useRef(null);
  const [names, setNames] = useState([]);
  useEffect(() => {
    if (!body.current) return undefined;
    const seen = new Set();
    let timer = null;
    const intersections = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) seen.add(target.dataset.name);
        else seen.delete(target.dataset.name);
      }
      clearTimeout(timer);
      timer = setTimeout(() => setNames([...seen].sort().slice(0, MAX_ROWS)), SETTLE_MS);
    });
    const observe = () => {
      for (const row of body.current.children) intersections.observe(row);
    };
    observe();
    const changes = new MutationObserver(observe);
    changes.observe(body.current, { childList: true });
    return () => {
      clearTimeout(timer);
      intersections.disconnect();
      changes.disconnect();
    };
  }, [of]);
  return [body, names];
}
