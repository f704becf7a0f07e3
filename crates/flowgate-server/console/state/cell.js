// A value that components watch.

import { useEffect, useState } from "../vendor/hooks.js";

/** A value, and those who want to know when it changes. */
export function cell(value) {
  const watchers = new Set();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const watcher of [...watchers]) watcher(value);
    },
    watch(watcher) {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };
}

/** The value of a cell; the component is drawn anew when it changes. */
export function useCell(source) {
  const [, draw] = useState(null);
  const drawn = source.get();
  useEffect(() => {
    const stop = source.watch(() => draw({}));
    // The effect runs after the drawing, and the value may have changed between the two.
    if (!Object.is(source.get(), drawn)) draw({});
    return stop;
  }, [source]);
  return drawn;
}
