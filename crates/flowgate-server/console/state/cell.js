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
  useEffect(() => {
    const seen = source.get();
    const stop = source.watch(() => draw({}));
    // It may have changed between the drawing and this effect.
    if (!Object.is(source.get(), seen)) draw({});
    return stop;
  }, [source]);
  return source.get();
}
